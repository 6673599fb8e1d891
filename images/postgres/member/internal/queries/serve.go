// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/web"
)

// failingPath is where the member asks which queries fail.
const failingPath = "/queries"

// answerLimit is how long the exporter of the server may take.
const answerLimit = 30 * time.Second

// Serve metrics of an exporter together with the metrics of the queries, until the context ends. The exporter is behind a URL.
func (r *Runner) Serve(ctx context.Context, address, exporter string) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(r); err != nil {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	client := &http.Client{Timeout: answerLimit}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+failingPath, func(w http.ResponseWriter, _ *http.Request) {
		failing, known := r.Failing()
		if !known {
			http.Error(w, "not every query has run yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(failing)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, q *http.Request) {
		if err := metrics(q.Context(), w, client, exporter, registry); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen for metrics: %w", err)
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second})
}

// metrics of the exporter, and after them the metrics of the queries, which never take the others away.
func metrics(ctx context.Context, w http.ResponseWriter, client *http.Client, exporter string, own prometheus.Gatherer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, exporter, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("cannot ask the exporter: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New("the exporter answers " + answer.Status)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var queries bytes.Buffer
	families, err := own.Gather()
	for _, f := range families {
		if _, failed := expfmt.MetricFamilyToText(&queries, f); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		fmt.Fprintf(&queries, "# some metrics of queries are left out: %q\n", err)
	}
	w.Header().Set("Content-Type", string(format))
	if _, err := io.Copy(w, answer.Body); err == nil {
		_, _ = queries.WriteTo(w)
	}
	return nil
}

// Failing asks the exporter of this pod at an address which queries fail.
func Failing(ctx context.Context, address string) (*members.QueriesReport, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+failingPath, nil)
	if err != nil {
		return nil, err
	}
	status, raw, err := web.Do(&http.Client{Timeout: 5 * time.Second}, r)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the exporter: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the exporter answers %d", status)
	}
	out := &members.QueriesReport{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("cannot understand the exporter: %w", err)
	}
	return out, nil
}
