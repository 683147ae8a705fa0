# The image of docker-compose.yml: web and worker are the same one, with another command.

FROM python:3.11-slim-bookworm AS front-end
WORKDIR /app
COPY requirements-build.txt ./
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt
COPY scripts/node scripts/node
COPY frontend/package.json frontend/package-lock.json frontend/
RUN cd frontend && ../scripts/node npm ci --no-audit --no-fund --ignore-scripts
COPY frontend frontend
RUN cd frontend && ../scripts/node node_modules/vite/bin/vite.js build

FROM python:3.11-slim-bookworm
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=probe_web.settings
WORKDIR /app
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt
COPY manage.py ./
COPY probe_web probe_web
COPY compare compare
COPY --from=front-end /app/frontend/dist frontend/dist
RUN python -m whitenoise.compress --quiet frontend/dist \
    && useradd --create-home --uid 1000 probe \
    && install --directory --owner=probe --group=probe /data /data/incoming
USER probe
VOLUME /data
EXPOSE 8000
