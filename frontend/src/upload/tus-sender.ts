import { DetailedError, defaultOptions, Upload } from "tus-js-client";
import { authorization } from "../api/authorization";
import { problemOf, RequestError, UNREACHABLE } from "../api/problem";
import type { GatheredFile } from "./gather";
import type { FileSender, SenderEvents, SenderFactory } from "./transfer";

const ENDPOINT = "/api/v1/uploads/";
/** A request as small as common limits of proxies in between allow, as large as keeps round trips rare. */
const CHUNK_BYTES = 32 * 1024 * 1024;

/**
 * Sends a file over tus 1.0. What is half sent is found again under the side and relative path of the file, its size and time: ranks have
 * files of one name and often one size, and the same dump may go to both sides.
 */
export function tusSender(side: string): SenderFactory {
  return (file, events) => new TusSender(side, file, events);
}

/** Forgets which uploads were half sent: a run took them, another must not find them. */
export async function forgetUploads(side: string, files: readonly GatheredFile[]): Promise<void> {
  const storage = defaultOptions.urlStorage;
  for (const file of files) {
    for (const previous of await storage.findUploadsByFingerprint(fingerprint(side, file)).catch(() => [])) {
      await storage.removeUpload(previous.urlStorageKey).catch(() => {});
    }
  }
}

function fingerprint(side: string, { file, path }: GatheredFile): string {
  return `probe:${side}:${path}:${file.size}:${file.lastModified}`;
}

class TusSender implements FileSender {
  private readonly upload: Upload;
  private stopped = false;
  /** An earlier attempt was found; what it left on the server is still to be reported. */
  private resuming = false;

  constructor(side: string, file: GatheredFile, events: SenderEvents) {
    this.upload = new Upload(file.file, {
      endpoint: ENDPOINT,
      metadata: { filename: file.path },
      chunkSize: CHUNK_BYTES,
      // Waiting and trying again is Transfer's, which can say so to the reader.
      retryDelays: null,
      fingerprint: () => Promise.resolve(fingerprint(side, file)),
      storeFingerprintForResuming: true,
      onBeforeRequest: (request) => {
        const known = authorization();
        if (known !== null) request.setHeader("Authorization", known);
      },
      onAfterResponse: (request, response) => {
        if (request.getMethod() !== "HEAD" || response.getStatus() >= 300) return;
        events.onProgress(Number(response.getHeader("Upload-Offset") ?? 0), this.resuming);
        this.resuming = false;
      },
      onProgress: (sent) => events.onProgress(sent, false),
      onSuccess: () => events.onDone(idOf(this.upload.url)),
      onError: (error) => events.onError(requestError(error)),
    });
  }

  start(): void {
    this.stopped = false;
    void this.search().then(() => {
      if (!this.stopped) this.upload.start();
    });
  }

  /** Without an address of its own (first start, or a server that answered nonsense when asked) an earlier attempt may know one. */
  private async search(): Promise<void> {
    if (this.upload.url !== null) return;
    const [previous] = await this.upload.findPreviousUploads().catch(() => []);
    if (previous === undefined) return;
    this.upload.resumeFromPreviousUpload(previous);
    this.resuming = true;
  }

  stop(): void {
    this.stopped = true;
    void this.upload.abort(false);
  }

  discard(): void {
    this.stopped = true;
    // What the server does not forget now it forgets by itself a day later.
    void this.upload.abort(true).catch(() => {});
  }
}

/** The last part of the upload's address. */
export function idOf(url: string | null): string {
  return (
    (url ?? "")
      .replace(/[?#].*$/, "")
      .replace(/\/+$/, "")
      .split("/")
      .at(-1) ?? ""
  );
}

function requestError(error: Error | DetailedError): RequestError {
  if (!(error instanceof DetailedError) || error.originalResponse === null) return new RequestError(0, UNREACHABLE);
  const status = error.originalResponse.getStatus();
  let body: unknown;
  try {
    body = JSON.parse(error.originalResponse.getBody());
  } catch {
    body = undefined;
  }
  return new RequestError(status, problemOf(status, body));
}
