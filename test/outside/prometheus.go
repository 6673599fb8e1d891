// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A PrometheusServer scrapes targets every second.
type PrometheusServer struct {
	// URL of the server, with TLS.
	URL string
	// CA has signed its certificate, in PEM format.
	CA []byte

	tb     testing.TB
	server *server
}

// A Target is a pod as Prometheus sees it.
type Target struct {
	// Address of its metrics: host and port. The path is /metrics.
	Address string
	// Labels that the platform's scrape configuration gives its series.
	Namespace, Pod, Algorithm, Slot string
}

// Prometheus starts a Prometheus with the recording rules of the platform and without targets, and stops it with the
// test.
func Prometheus(tb testing.TB) *PrometheusServer {
	tb.Helper()
	s := newServer(tb, "prometheus")
	p := &PrometheusServer{URL: s.url, CA: s.authority, tb: tb, server: s}
	p.configure()
	web := filepath.Join(s.dir, "web.yaml")
	data := fmt.Sprintf("tls_server_config: {cert_file: %s, key_file: %s}\n", s.certFile, s.keyFile)
	if err := os.WriteFile(web, []byte(data), 0o600); err != nil {
		tb.Fatalf("cannot start prometheus: %v", err)
	}
	s.args = []string{
		program(tb, "prometheus", "prometheus"),
		"--config.file=" + p.file(), "--storage.tsdb.path=" + s.folder(tb, "data"), "--storage.tsdb.retention.time=1h",
		"--web.listen-address=" + loopback + ":" + s.port, "--web.config.file=" + web, "--web.enable-lifecycle", "--log.level=warn",
	}
	s.env = environment()
	s.ready = func() error { return s.answers("/-/ready", http.StatusOK) }
	s.run(tb)
	return p
}

// Scrape only these targets from now on.
func (p *PrometheusServer) Scrape(targets ...Target) {
	p.tb.Helper()
	p.configure(targets...)
	transport := transport(p.CA)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: answerTimeout}
	resp, err := client.Post(p.URL+"/-/reload", "", nil)
	if err != nil {
		p.tb.Fatalf("cannot have prometheus scrape: %v", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.tb.Fatalf("cannot have prometheus scrape: it answers %s: %s", resp.Status, p.server.log())
	}
}

// Backfill series of the last hour in the text format of OpenMetrics, with times. The server starts again for it.
func (p *PrometheusServer) Backfill(openMetrics string) {
	p.tb.Helper()
	p.Stop()
	file := filepath.Join(p.server.dir, "backfill.txt")
	if err := os.WriteFile(file, []byte(openMetrics), 0o600); err != nil {
		p.tb.Fatalf("cannot fill prometheus: %v", err)
	}
	fill := exec.Command(program(p.tb, "prometheus", "promtool"), "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(p.server.dir, "data")) //nolint:gosec // Files of the test.
	if out, err := fill.CombinedOutput(); err != nil {
		p.tb.Fatalf("cannot fill prometheus: %v: %s", err, out)
	}
	p.Start()
}

// Stop the server. It keeps its data.
func (p *PrometheusServer) Stop() { p.server.stop() }

// Start the server again.
func (p *PrometheusServer) Start() {
	p.tb.Helper()
	p.server.start(p.tb)
}

func (p *PrometheusServer) file() string { return filepath.Join(p.server.dir, "prometheus.yaml") }

func (p *PrometheusServer) configure(targets ...Target) {
	p.tb.Helper()
	b := &bytes.Buffer{}
	_, _ = fmt.Fprintf(b, "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n  - job_name: algorithms\n    static_configs:\n",
		filepath.Join(repository(p.tb), "package", "monitoring", "rules.yaml"))
	for _, t := range targets {
		_, _ = fmt.Fprintf(b, "      - targets: [%q]\n        labels: {namespace: %q, pod: %q, algorithm: %q, slot: %q}\n",
			t.Address, t.Namespace, t.Pod, t.Algorithm, t.Slot)
	}
	if len(targets) == 0 {
		b.WriteString("      []\n")
	}
	if err := os.WriteFile(p.file(), b.Bytes(), 0o600); err != nil {
		p.tb.Fatalf("cannot configure prometheus: %v", err)
	}
}

// Promtool is the path of Prometheus' own tool, which tests rules.
func Promtool(tb testing.TB) string {
	tb.Helper()
	return program(tb, "prometheus", "promtool")
}
