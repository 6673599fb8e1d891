# SPDX-License-Identifier: Apache-2.0
"""Serves MLflow as `mlflow server --workers 1` does in the end, without its parent process, which would take as much memory
again and twice the time to start.

The arguments are uvicorn's; what `mlflow server` takes as options comes from the environment variables that it sets for its
worker. Those are MLflow's own business: look again when the version in requirements.txt changes.
"""

import os

import uvicorn
import werkzeug.security
from mlflow.server.handlers import initialize_backend_stores

# MLflow verifies one or two passwords for each request, each worth 0.1 s of computing by default. Nobody has to be kept from
# guessing these.
werkzeug.security.generate_password_hash.__defaults__ = ("pbkdf2:sha256:1", 16)

# Tables are made before the first request, not by it: two at once would both try.
initialize_backend_stores(os.environ["_MLFLOW_SERVER_FILE_STORE"], None, os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"])

uvicorn.main()
