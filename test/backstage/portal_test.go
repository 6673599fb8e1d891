// SPDX-License-Identifier: Apache-2.0

//go:build backstage

package backstage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/test/outside"
)

// timeout with a portal on a busy machine.
const timeout = 5 * time.Minute

// A portal is a Backstage with the templates and the configuration of integrations/backstage.
type portal struct {
	t   *testing.T
	url string
	// token of a guest.
	token string
}

func newPortal(t *testing.T, c cluster) portal {
	t.Helper()
	integration, err := filepath.Abs("../../integrations/backstage")
	if err != nil {
		t.Fatal(err)
	}
	p := portal{t: t, url: outside.Backstage(t, []string{filepath.Join(integration, "app-config.capstan.yaml")}, []string{
		"CAPSTAN_TEMPLATES=" + integration, "CAPSTAN_CLUSTER=test", "CAPSTAN_CLUSTER_URL=" + c.url, "CAPSTAN_CLUSTER_CA=" + c.authority, "CAPSTAN_CLUSTER_TOKEN=" + c.token,
		"GITHUB_TOKEN=none", // for a rehearsal of a pull request, which never leaves the machine
	})}
	var guest struct {
		Identity struct {
			Token string `json:"token"`
		} `json:"backstageIdentity"`
	}
	p.call(http.MethodPost, "/api/auth/guest/refresh", struct{}{}, &guest)
	p.token = guest.Identity.Token
	return p
}

// call the API of the portal. It calls itself to answer, which can fail on a busy machine.
func (p portal) call(method, path string, body, answer any) {
	p.t.Helper()
	began := time.Now()
	for {
		err := p.try(method, path, body, answer)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "fetch failed") || time.Since(began) > timeout {
			p.t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
}

func (p portal) try(method, path string, body, answer any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

// An entity of the catalog.
type entity struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Type  string `json:"type"`
		Owner string `json:"owner"`
	} `json:"spec"`
}

// until the catalog has an entity.
func (p portal) until(kind, namespace, name string) entity {
	p.t.Helper()
	began := time.Now()
	for {
		var found entity
		err := p.try(http.MethodGet, fmt.Sprintf("/api/catalog/entities/by-name/%s/%s/%s", kind, namespace, name), nil, &found)
		if err == nil {
			p.t.Logf("%s %s/%s is in the catalog after %s", kind, namespace, name, time.Since(began).Round(time.Second))
			return found
		}
		if time.Since(began) > timeout {
			p.t.Fatalf("not in the catalog within %s: %v", timeout, err)
		}
		time.Sleep(time.Second)
	}
}

// run a template as its form does.
func (p portal) run(template string, values map[string]any) string {
	p.t.Helper()
	var task struct {
		ID string `json:"id"`
	}
	p.call(http.MethodPost, "/api/scaffolder/v2/tasks", map[string]any{"templateRef": "template:default/" + template, "values": values}, &task)
	return task.ID
}

// manifest that a task has written, which is in its log when it is done.
func (p portal) manifest(task string) (path, text string) {
	p.t.Helper()
	began := time.Now()
	for {
		var events []struct {
			Type string `json:"type"`
			Body struct {
				Message string `json:"message"`
			} `json:"body"`
		}
		err := p.try(http.MethodGet, "/api/scaffolder/v2/tasks/"+task+"/events", nil, &events)
		for _, e := range events {
			if _, workspace, ok := strings.Cut(e.Body.Message, "Workspace:\n - "); ok {
				path, text, _ = strings.Cut(workspace, ":\n\n  ")
			}
			if e.Type != "completion" {
				continue
			}
			if e.Body.Message != "Run completed with status: completed" || text == "" {
				p.t.Fatalf("task %s ended without a manifest: %+v", task, events)
			}
			return path, text
		}
		if time.Since(began) > timeout {
			p.t.Fatalf("task %s has not ended within %s: %v: %+v", task, timeout, err, events)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// object of a manifest, which has one document.
func object(t *testing.T, manifest string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.UnmarshalStrict([]byte(manifest), &o); err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	return o
}
