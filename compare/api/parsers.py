"""Bodies that are larger than memory: read as a stream, written to disk as they arrive, summed on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, DataAndFiles, MultiPartParser

from compare.models import new_slug
from compare.services import space, storage, uploads
from compare.services.refusals import Refusal


class OffsetStream(BaseParser):
    """The body of a tus PATCH, unread: ``request.data`` is the stream. (``request.body`` would stop at 2.5 MB.)"""

    media_type = "application/offset+octet-stream"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return stream


class ArrivedFile(UploadedFile):  # type: ignore[type-arg]
    """A multipart file that lies in the data folder; ``name`` is what its sender called it, ``path`` where it is."""

    def __init__(self, path: Path, sha256: str, **about: Any) -> None:
        super().__init__(file=BytesIO(), **about)
        self.path = path
        self.sha256 = sha256


class ArrivingFiles(FileUploadHandler):
    """Writes each file of a request into ``uploads/incoming/`` under a name of ours."""

    chunk_size = uploads.BLOCK

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[Path] = []
        self.cut = False
        self._file: Any = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.paths.append(storage.incoming() / new_slug())
        self._file = self.paths[-1].open("wb")
        self._sum = hashlib.sha256()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._file.write(raw_data)
        self._sum.update(raw_data)

    def file_complete(self, file_size: int) -> ArrivedFile:
        self._file.close()
        return ArrivedFile(self.paths[-1], self._sum.hexdigest(), name=self.file_name, size=file_size, content_type=self.content_type)

    def upload_interrupted(self) -> None:
        self.cut = True

    def discard(self) -> None:
        """Remove what no run has taken."""
        if self._file:
            self._file.close()
        for path in self.paths:
            path.unlink(missing_ok=True)


class Counted:
    """A stream that knows how many bytes it gave."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(size)
        self.given += len(block)
        return block


class StreamedFiles(MultiPartParser):
    """multipart/form-data whose files go to disk as they arrive. A request that breaks off leaves nothing behind."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> DataAndFiles[Any, Any]:
        request = (parser_context or {})["request"]
        length = int(request.META.get("CONTENT_LENGTH") or 0)
        if length > settings.UPLOAD_MAX_BYTES:
            raise Refusal("upload_too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit=settings.UPLOAD_MAX_BYTES)
        space.check(length)
        handler, counted = ArrivingFiles(), Counted(stream)
        request.upload_handlers = [handler]
        try:
            parsed = super().parse(cast("IO[Any]", counted), media_type, parser_context)
            if handler.cut or counted.given < length:
                raise MultiPartParserError(f"it ended after {counted.given} of {length} bytes")  # noqa: TRY301 - like Django's own
        except (MultiPartParserError, UnreadablePostError) as error:
            handler.discard()
            raise ParseError(str(error) or "it broke off") from error
        except Exception:
            handler.discard()
            raise
        return parsed
