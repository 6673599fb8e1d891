// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/test/outside"
)

// mlflow starts a server that hands out artifacts itself: by the interpreter that it is started with, because it reads from its
// environment where they are.
func mlflow(t *testing.T) *outside.MLflowServer {
	t.Helper()
	const variable = "CAPSTAN_PROGRAM_MLFLOW"
	dir, artifacts := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexport _MLFLOW_SERVER_SERVE_ARTIFACTS=true _MLFLOW_SERVER_ARTIFACT_DESTINATION='%s'\nexec '%s' \"$@\"\n",
		artifacts, filepath.Join(os.Getenv(variable), "bin", "python3"))
	if err := os.WriteFile(filepath.Join(dir, "bin", "python3"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, dir)
	return outside.MLflow(t)
}

// log an artifact.
func logArtifact(t *testing.T, srv *outside.MLflowServer, path, content string) {
	t.Helper()
	u := url.URL{Path: "/api/2.0/mlflow-artifacts/artifacts/" + path}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+u.EscapedPath(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(srv.Username, srv.Password)
	resp, err := outside.Client(srv.CA).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("cannot log artifact %q: %s", path, resp.Status)
	}
}

func TestMLflow(t *testing.T) {
	srv := mlflow(t)
	const root = "0/1a2b3c/artifacts/model"
	model := map[string]string{"MLmodel": "flavors: {}", "data/model.pkl": random(5 << 20), "data/a b+&c.txt": "x", "empty": ""}
	for name, content := range model {
		logArtifact(t, srv, root+"/"+name, content)
	}
	proxy := outside.Proxy(t, srv.URL, srv.CA)
	login := func(password string) map[string]string {
		return map[string]string{"username": srv.Username, "password": password, "ca.crt": string(proxy.CA)}
	}
	fetch := func(credentials map[string]string, source string, args ...string) (*process, string) {
		cache := t.TempDir()
		return start(t, credentials, append([]string{"--source=" + source, "--endpoint=" + proxy.URL + "/", "--cache=" + cache, "--key=reco"}, args...)...), cache
	}

	// This server cannot go on in the middle, so the beginning comes again and is skipped.
	proxy.Fail(outside.Call("GET /api/2.0/mlflow-artifacts/artifacts/"+root+"/data/model.pkl"), outside.Truncate(3<<20).Times(1))
	proxy.Fail(outside.Call("GET /api/2.0/mlflow-artifacts/artifacts"), outside.MLflowError(503, "TEMPORARILY_UNAVAILABLE", "Later.").Times(1))
	p, cache := fetch(login(srv.Password), "mlflow-artifacts:/"+root, "--digest="+digestOf(t, folder(t, model)))
	p.succeed()
	holds(t, cache, "reco", model)
	p, cache = fetch(login(srv.Password), "mlflow-artifacts:/"+root+"/MLmodel")
	p.succeed()
	holds(t, cache, "reco", map[string]string{"MLmodel": "flavors: {}"})
	p, _ = fetch(login(srv.Password), "mlflow-artifacts:/0/none/artifacts/model")
	p.fail("ModelNotFound: ", `"mlflow-artifacts:/0/none/artifacts/model"`)
	p, _ = fetch(login("wrong"), "mlflow-artifacts:/"+root)
	p.fail("ModelForbidden: ", "not authenticated")
	p, _ = fetch(login(srv.Password), "mlflow-artifacts:/"+root, "--size=7")
	p.fail("ModelSizeMismatch: ", "instead of 7")

	// A proxy that lets everybody in with a token.
	proxy.Fail(func(r *http.Request) bool { return r.Header.Get("Authorization") != "Bearer token" }, outside.Answer(403, `{"message": "who are you?"}`))
	p, _ = fetch(map[string]string{"token": "other", "ca.crt": string(proxy.CA)}, "mlflow-artifacts:/"+root)
	p.fail("ModelForbidden: ", "who are you?")
	proxy.Clear()
	proxy.Fail(nil, outside.Answer(200, "<html>welcome</html>"))
	p, _ = fetch(login(srv.Password), "mlflow-artifacts:/"+root)
	p.fail("ModelInvalid: ", "no list of artifacts")

	// A server that lies about where files are.
	proxy.Clear()
	proxy.Fail(outside.Call("GET /api/2.0/mlflow-artifacts/artifacts"), outside.Answer(200, `{"files": [{"path": "..", "is_dir": false, "file_size": 1}]}`))
	p, _ = fetch(login(srv.Password), "mlflow-artifacts:/"+root)
	p.fail("ModelInvalid: ", `".."`)
}
