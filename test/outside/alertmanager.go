// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An AlertmanagerServer sends alerts to receivers.
type AlertmanagerServer struct {
	server *server
}

// An Alert as Prometheus sends it. One that has ended is resolved.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// Alertmanager starts an Alertmanager with a configuration, and stops it with the test.
func Alertmanager(tb testing.TB, configuration string) *AlertmanagerServer {
	tb.Helper()
	s := newServer(tb, "alertmanager")
	file, web := filepath.Join(s.dir, "alertmanager.yaml"), filepath.Join(s.dir, "web.yaml")
	for path, content := range map[string]string{
		file: configuration, web: fmt.Sprintf("tls_server_config: {cert_file: %s, key_file: %s}\n", s.certFile, s.keyFile),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatalf("cannot start alertmanager: %v", err)
		}
	}
	s.args = []string{
		program(tb, "alertmanager", "alertmanager"),
		"--config.file=" + file, "--storage.path=" + s.folder(tb, "data"), "--cluster.listen-address=",
		"--web.listen-address=" + loopback + ":" + s.port, "--web.config.file=" + web, "--log.level=warn",
	}
	s.env = environment()
	s.ready = func() error { return s.answers("/-/ready", http.StatusOK) }
	s.run(tb)
	return &AlertmanagerServer{server: s}
}

// Send alerts to it, as Prometheus does.
func (a *AlertmanagerServer) Send(tb testing.TB, alerts ...Alert) {
	tb.Helper()
	body, err := json.Marshal(alerts)
	if err != nil {
		tb.Fatal(err)
	}
	if status, said := a.do(tb, http.MethodPost, "/api/v2/alerts", body); status != http.StatusOK {
		tb.Fatalf("cannot send alerts: alertmanager answers %d: %s", status, said)
	}
}

// Notified is how many notifications its webhooks sent, and how many of them failed.
func (a *AlertmanagerServer) Notified(tb testing.TB) (sent, failed int) {
	tb.Helper()
	_, metrics := a.do(tb, http.MethodGet, "/metrics", nil)
	for lines := bufio.NewScanner(bytes.NewReader(metrics)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || !strings.Contains(name, `integration="webhook"`) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "alertmanager_notifications_total{"):
			sent += int(n)
		case strings.HasPrefix(name, "alertmanager_notifications_failed_total{"):
			failed += int(n)
		}
	}
	return sent, failed
}

func (a *AlertmanagerServer) do(tb testing.TB, method, path string, body []byte) (int, []byte) {
	tb.Helper()
	transport := transport(a.server.authority)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(tb.Context(), method, a.server.url+path, bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: transport, Timeout: answerTimeout}).Do(req)
	if err != nil {
		tb.Fatalf("cannot use alertmanager: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatalf("cannot use alertmanager: %v", err)
	}
	return resp.StatusCode, said
}
