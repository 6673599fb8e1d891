// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An MLflowServer is a tracking server with its model registry. It accepts requests whose Host is 127.0.0.1 and any
// port, so that a Proxy can be in front of it, and rejects others.
type MLflowServer struct {
	*server

	// URL as in https://127.0.0.1:4711; the certificate is signed by CA (PEM).
	URL string
	CA  []byte
	// Username and Password are the administrator's, OtherUsername and OtherPassword belong to a user without any
	// rights. All are empty when the server has no authentication.
	Username, Password           string
	OtherUsername, OtherPassword string

	tb testing.TB
}

// MLflow starts a server with users (basic authentication), who cannot see each other's entries.
func MLflow(tb testing.TB) *MLflowServer {
	tb.Helper()
	s := &MLflowServer{
		server: newServer(tb, "mlflow"), tb: tb,
		Username: "capstan", Password: "capstan-password", OtherUsername: "other", OtherPassword: "other-password",
	}
	config := filepath.Join(s.dir, "auth.ini")
	if err := os.WriteFile(config, []byte("[mlflow]\n"+
		"default_permission = NO_PERMISSIONS\n"+
		"database_uri = sqlite:///"+filepath.Join(s.dir, "users.db")+"\n"+
		"admin_username = "+s.Username+"\n"+
		"admin_password = "+s.Password+"\n"+
		"authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"), 0o600); err != nil {
		tb.Fatalf("cannot start mlflow: %v", err)
	}
	s.serve("mlflow.server.auth:create_app", "--factory")
	s.env = append(s.env, "MLFLOW_AUTH_CONFIG_PATH="+config, "MLFLOW_FLASK_SERVER_SECRET_KEY=capstan")
	s.run(tb)
	s.must("users/create", map[string]any{"username": s.OtherUsername, "password": s.OtherPassword}, nil)
	return s
}

// MLflowOpen starts a server without authentication, like one behind a proxy that authenticates.
func MLflowOpen(tb testing.TB) *MLflowServer {
	tb.Helper()
	s := &MLflowServer{server: newServer(tb, "mlflow"), tb: tb}
	s.serve("mlflow.server.fastapi_app:app")
	s.run(tb)
	return s
}

// serve prepares the command line.
func (s *MLflowServer) serve(app string, options ...string) {
	s.tb.Helper()
	s.URL, s.CA = s.url, s.authority
	s.args = append([]string{
		program(s.tb, "mlflow", filepath.Join("bin", "python3")), filepath.Join(repository(s.tb), "hack", "tools", "mlflow", "serve.py"),
		"--host=" + loopback, "--port=" + s.port, "--ssl-certfile=" + s.certFile, "--ssl-keyfile=" + s.keyFile,
		// Requests that hang must not delay its stop.
		"--timeout-graceful-shutdown=1", "--no-access-log", app,
	}, options...)
	s.env = environment(
		"_MLFLOW_SGI_NAME=uvicorn",
		"_MLFLOW_SERVER_FILE_STORE=sqlite:///"+filepath.Join(s.dir, "mlflow.db"),
		"_MLFLOW_SERVER_ARTIFACT_ROOT=file://"+s.folder(s.tb, "artifacts"),
		"MLFLOW_SERVER_ALLOWED_HOSTS="+loopback+":*",
		"HOME="+s.dir,
	)
	s.ready = func() error { return s.answers("/health", http.StatusOK) }
}

// Stop makes the server unreachable until Start.
func (s *MLflowServer) Stop() { s.stop() }

// Start starts a stopped server again with the same port, certificate and data.
func (s *MLflowServer) Start() {
	s.tb.Helper()
	s.start(s.tb)
}

// Call sends one request as the administrator. The path is relative to the API's (registered-models/get?name=fraud); a
// body that is not nil is sent as JSON. It returns status and body of the response.
func (s *MLflowServer) Call(method, path string, body any) (int, string) {
	s.tb.Helper()
	status, answer, err := s.call(method, path, body)
	if err != nil {
		s.tb.Fatalf("cannot %s %s: %v", method, path, err)
	}
	return status, answer
}

// A LoggedModel is a version in the registry, and the run that made it.
type LoggedModel struct {
	Name, Version, RunID, Source string
}

// Log does what a data scientist does: a run with a parameter and a metric that succeeds, and a version of a registered
// model from the run's artifacts. It creates the model when it is missing.
func (s *MLflowServer) Log(model string, tags map[string]string) LoggedModel {
	s.tb.Helper()
	now := time.Now().UnixMilli()
	var run struct {
		Run struct {
			Info struct {
				ID  string `json:"run_id"`
				URI string `json:"artifact_uri"`
			}
		}
	}
	s.must("runs/create", map[string]any{"experiment_id": "0", "start_time": now}, &run)
	id := run.Run.Info.ID
	s.must("runs/log-parameter", map[string]any{"run_id": id, "key": "depth", "value": "3"}, nil)
	s.must("runs/log-metric", map[string]any{"run_id": id, "key": "auc", "value": 0.9, "timestamp": now}, nil)
	s.must("runs/update", map[string]any{"run_id": id, "status": "FINISHED", "end_time": now}, nil)

	if status, body := s.Call(http.MethodPost, "registered-models/create", map[string]any{"name": model}); status != http.StatusOK &&
		!strings.Contains(body, "RESOURCE_ALREADY_EXISTS") {
		s.tb.Fatalf("cannot register model %q: %d: %s", model, status, body)
	}
	type tag struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	list := make([]tag, 0, len(tags))
	for key, value := range tags {
		list = append(list, tag{key, value})
	}
	source := run.Run.Info.URI + "/model"
	var created struct {
		Version struct {
			// Older servers write a number here.
			Version json.RawMessage
		} `json:"model_version"`
	}
	s.must("model-versions/create",
		map[string]any{"name": model, "source": source, "run_id": id, "tags": list}, &created)
	version := string(created.Version.Version)
	if unquoted, err := strconv.Unquote(version); err == nil {
		version = unquoted
	}
	return LoggedModel{Name: model, Version: version, RunID: id, Source: source}
}

// must posts a request, fails the test unless the status is 200, and decodes the response into out if that is not nil.
func (s *MLflowServer) must(path string, body, out any) {
	s.tb.Helper()
	status, answer := s.Call(http.MethodPost, path, body)
	if status != http.StatusOK {
		s.tb.Fatalf("cannot post %s: %d: %s", path, status, answer)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(answer), out); err != nil {
		s.tb.Fatalf("cannot read the answer to %s: %v: %s", path, err, answer)
	}
}

func (s *MLflowServer) call(method, path string, body any) (int, string, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, "", fmt.Errorf("cannot encode a request: %w", err)
		}
		content = bytes.NewReader(data)
	}
	address, err := url.JoinPath(s.URL, "api/2.0/mlflow/")
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, address+path, content)
	if err != nil {
		return 0, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.Username != "" {
		req.SetBasicAuth(s.Username, s.Password)
	}
	transport := transport(s.CA)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: answerTimeout}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}
