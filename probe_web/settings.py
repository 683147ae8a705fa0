"""Every setting, read from the environment, typed and with a default that works on one machine.

`.env.example` lists them for people; a test holds the two lists against each other. Importing this file opens no database, no broker and
writes no file: `manage.py compare` needs none of them.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import environ

from probe_web.embedded.places import broker_socket

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

# --- Where things are ---------------------------------------------------------------------------------------------------------------

# Everything that the product keeps: database (unless DATABASE_URL says otherwise), uploads, runs, comparisons, logs, the broker's socket.
DATA_DIR = Path(env.str("PROBE_DATA_DIR", default=str(BASE_DIR / "var"))).expanduser().resolve()
FRONT_END_DIR = BASE_DIR / "frontend" / "dist"

# --- Who may reach it ---------------------------------------------------------------------------------------------------------------

# Signs cookies. A process without one makes its own, so several processes of one installation must be given the same (./run does).
SECRET_KEY = env.str("PROBE_SECRET_KEY", default="") or secrets.token_urlsafe(50)
DEBUG = env.bool("PROBE_DEBUG", default=False)

# The address that people open and that links carry; no slash at its end.
PUBLIC_URL = env.str("PROBE_PUBLIC_URL", default="http://127.0.0.1:8000").rstrip("/")
# True when the server listens on a loopback address, so that a link opens on this machine only.
LOOPBACK_ONLY = env.bool("PROBE_LOOPBACK_ONLY", default=True)

# How this server is started for others to reach it, with the options it has now. ./run says it.
SHARE_COMMAND = env.str("PROBE_SHARE_COMMAND", default="./run --host 0.0.0.0")
# Opens the lists of runs and comparisons to browsers on other machines (`/?key=…`); empty = the lists are for this machine only.
LISTS_KEY = env.str("PROBE_LISTS_KEY", default="")

# Host names that the server answers to, besides loopback addresses, the name in PUBLIC_URL and, when it listens beyond loopback, bare IP
# addresses. Django's own check cannot say "127.0.0.0/8", so it is switched off and probe_web.middleware.HostCheck does the work.
HOST_NAMES = [name.lower() for name in env.list("PROBE_HOST_NAMES", default=[])]
ALLOWED_HOSTS = ["*"]
# Other origins whose pages may post here, such as the outer address of a proxy.
TRUSTED_ORIGINS = [origin.rstrip("/") for origin in env.list("PROBE_TRUSTED_ORIGINS", default=[])]

PUBLIC_URL_IS_HTTPS = urlsplit(PUBLIC_URL).scheme == "https"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("PROBE_BEHIND_PROXY", default=False) else None
SECURE_HSTS_SECONDS = env.int("PROBE_HSTS_SECONDS", default=0)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
# Browsers ignore this header on plain http and complain about it in their console.
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin" if PUBLIC_URL_IS_HTTPS else None
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "worker-src": ["'self'"],
        "font-src": ["'self'"],
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

# --- The application ----------------------------------------------------------------------------------------------------------------

# No accounts, sessions or admin pages yet: what is not installed cannot be attacked, and costs no start-up time.
INSTALLED_APPS = [
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "csp",
    "compare",
    "probe_web",
]
MIDDLEWARE = [
    "probe_web.middleware.HostCheck",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "probe_web.middleware.OriginCheck",
    "probe_web.middleware.ListsGate",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "probe_web.urls"
WSGI_APPLICATION = "probe_web.wsgi.application"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The built front end is served as it is: Vite has hashed the names already, and the build left a .gz beside each file.
STATIC_URL = "/static/"
STATICFILES_DIRS = [FRONT_END_DIR] if FRONT_END_DIR.is_dir() else []
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/assets/"

# --- Database -----------------------------------------------------------------------------------------------------------------------

DATABASES: dict[str, dict[str, Any]] = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "probe_web.sqlite3"}}
if env.str("DATABASE_URL", default=""):
    DATABASES["default"] = env.db_url("DATABASE_URL")
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Readers and one writer at a time, from several processes: write-ahead log, and transactions that take the write lock when they begin
    # instead of failing half-way.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # The last one that closes removes the log and its index, and on a full disk nobody could make them again, not even to read.
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# --- Work ---------------------------------------------------------------------------------------------------------------------------

# redis://host:6379/0, rediss://…, unix:///path?db=0. Empty = the embedded broker of ./run on its socket in the data folder.
REDIS_URL = env.str("REDIS_URL", default="")
BROKER_URL = REDIS_URL or f"unix://{quote(str(broker_socket(DATA_DIR)))}?db=0"

CELERY_BROKER_URL = BROKER_URL.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Somebody waits for an answer while a task is sent: one quick try. The rows are the truth and are sent again (docs/adr/0002).
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 10, "socket_keepalive": True}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_TIME_LIMIT = env.int("PROBE_TASK_TIME_LIMIT_SECONDS", default=6 * 3600)
CELERY_TASK_DEFAULT_QUEUE = "probe_web"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A message stays with the broker until a process is free for it: another worker may be, and a small comparison goes before the parts of
# a large one.
CELERY_WORKER_DISABLE_PREFETCH = True
# A process that a large comparison made large ends after it and gives its memory back to the machine; the others go on.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 300_000  # KiB, at its highest
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

# A worker that computes says so every HEARTBEAT_SECONDS; a row that says it is running and has been silent for INTERRUPTED_AFTER_SECONDS
# has lost its worker. A row that is queued and was not claimed for RESEND_AFTER_SECONDS is sent to the broker again.
HEARTBEAT_SECONDS = env.float("PROBE_HEARTBEAT_SECONDS", default=2.0)
INTERRUPTED_AFTER_SECONDS = env.float("PROBE_INTERRUPTED_AFTER_SECONDS", default=30.0)
RESEND_AFTER_SECONDS = env.float("PROBE_RESEND_AFTER_SECONDS", default=30.0)

# --- Cache: counts for rate limits, nothing that may not be lost ----------------------------------------------------------------------

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL, "KEY_PREFIX": "probe_web"}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}  # ./run has one web process
}

# --- Uploads ------------------------------------------------------------------------------------------------------------------------

# True: who sends dumps or asks for comparisons from another machine shows a token (manage.py token) or the start-up key (docs/adr/0007).
UPLOAD_REQUIRES_TOKEN = env.bool("PROBE_UPLOAD_REQUIRES_TOKEN", default=False)
UPLOAD_MAX_BYTES = env.int("PROBE_UPLOAD_MAX_BYTES", default=64 * 1024**3)
# Loose files in one run; an archive is one.
UPLOAD_MAX_FILES = env.int("PROBE_UPLOAD_MAX_FILES", default=10_000)
# Uploads that no run has taken yet, of all senders together.
UPLOAD_MAX_OPEN = env.int("PROBE_UPLOAD_MAX_OPEN", default=50_000)
# Bytes of all that was uploaded, and of what is still to arrive of it; 0 = as much as the disk holds.
STORED_MAX_BYTES = env.int("PROBE_STORED_MAX_BYTES", default=0)
# Comparisons that nobody opened for this many days are removed, and so are runs that no comparison uses; 0 = everything is kept.
KEEP_UNUSED_DAYS = env.float("PROBE_KEEP_UNUSED_DAYS", default=0.0)
# An upload that nobody continued for this long is thrown away.
UPLOAD_IDLE_HOURS = env.float("PROBE_UPLOAD_IDLE_HOURS", default=24.0)
# The product refuses uploads while less than this is free on the data folder's disk.
DISK_RESERVE_BYTES = env.int("PROBE_DISK_RESERVE_BYTES", default=256 * 1024**2)
DATA_UPLOAD_MAX_NUMBER_FILES = UPLOAD_MAX_FILES
DATA_UPLOAD_MAX_NUMBER_FIELDS = UPLOAD_MAX_FILES + 1_000  # each file may come with its path
# On the data folder's own disk, so that a received file is moved and not copied.
FILE_UPLOAD_TEMP_DIR = str(DATA_DIR / "incoming") if (DATA_DIR / "incoming").is_dir() else None

# --- API ----------------------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "probe_web",
    "DESCRIPTION": "Compare two dumps: where a model first diverges between training and inference, and why.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RunState": "compare.models.Run.State",
        "ComparisonState": "compare.models.Comparison.State",
        "PieceState": "compare.models.Piece.State",
    },
}

# --- Logs ---------------------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": env.str("PROBE_LOG_LEVEL", default="INFO").upper()},
    "loggers": {"django": {"handlers": ["stderr"], "level": "INFO", "propagate": False}},
}

# W003: no cookie here lets anybody write, and OriginCheck refuses pages of other sites. W004, W008: plain http on one machine or in one's
# own network is a way to run this; where it is served over https, the proxy in front redirects and says for how long.
SILENCED_SYSTEM_CHECKS = ["security.W003", "security.W004", "security.W008"]
