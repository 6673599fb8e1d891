// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// An api is a cluster, by way of a proxy of kubectl, which knows every way to log in that there is.
type api struct {
	client *http.Client
	proxy  *exec.Cmd
	folder string
	said   *bytes.Buffer
}

// dial the cluster of KUBECONFIG. No other user can use the proxy: its socket is in a folder of ours.
func dial(ctx context.Context) (*api, error) {
	folder, err := os.MkdirTemp("", "watch-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a socket: %w", err)
	}
	socket := filepath.Join(folder, "kubectl")
	a := &api{folder: folder, said: &bytes.Buffer{}, client: &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
	}}
	a.proxy = exec.CommandContext(ctx, "kubectl", "proxy", "--unix-socket="+socket, "--reject-methods=^(POST|PUT|PATCH|DELETE)$")
	a.proxy.Stderr = a.said
	if err := a.proxy.Start(); err != nil {
		_ = os.RemoveAll(folder)

		return nil, fmt.Errorf("cannot reach the cluster: %w: put kubectl into PATH", err)
	}
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return a, nil
		}
	}
	a.close()

	return nil, fmt.Errorf("cannot reach the cluster: kubectl proxy does not start: %s", a.said)
}

func (a *api) close() {
	_ = a.proxy.Process.Kill()
	_ = a.proxy.Wait()
	_ = os.RemoveAll(a.folder)
}

// look at an Algorithm and at the Deployments of its slots.
func (a *api) look(ctx context.Context, namespace, name string) (view, error) {
	v := view{now: time.Now()}
	if err := a.get(ctx, fmt.Sprintf("/apis/capstan.dev/v1alpha1/namespaces/%s/algorithms/%s", url.PathEscape(namespace), url.PathEscape(name)), &v.algorithm); err != nil {
		return view{}, err
	}
	var list struct {
		Items []deployment `json:"items"`
	}
	query := url.Values{"labelSelector": {"capstan.dev/algorithm=" + name}}
	if err := a.get(ctx, fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments?%s", url.PathEscape(namespace), query.Encode()), &list); err != nil {
		return view{}, err
	}
	v.deployments = list.Items

	return v, nil
}

func (a *api) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	rsp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	if rsp.StatusCode != http.StatusOK {
		// The API server gives the cause in the field message, and a proxy as plain text.
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(body, &status) != nil || status.Message == "" {
			status.Message = strings.TrimSpace(string(body))
		}

		return fmt.Errorf("cannot read %s: %s: %s", path, rsp.Status, status.Message)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}

	return nil
}
