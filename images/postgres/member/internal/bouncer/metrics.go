// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/capstan-dev/capstan/images/member/web"
)

// A metric of PgBouncer's own: columns of what it shows.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// columns by the value of the last label; without one, the column "" has the name.
	columns map[string]string
	scale   float64
}

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("capstan_pooler_"+name, help, labels, nil)
}

var (
	pools = []metric{
		{
			described("clients", "Clients by what they do: active with the server, or waiting for it.", "datname", "login", "state"), prometheus.GaugeValue,
			map[string]string{"active": "cl_active", "waiting": "cl_waiting"},
			1,
		},
		{
			described("connections", "Connections to the server by what they do.", "datname", "login", "state"), prometheus.GaugeValue,
			map[string]string{"active": "sv_active", "idle": "sv_idle", "used": "sv_used", "login": "sv_login"},
			1,
		},
		{
			described("longest_wait_seconds", "How long the first of the clients that wait has waited.", "datname", "login"), prometheus.GaugeValue,
			map[string]string{"": "maxwait"},
			1,
		},
	}
	totals = []metric{
		{described("transactions_total", "Transactions.", "datname"), prometheus.CounterValue, map[string]string{"": "total_xact_count"}, 1},
		{described("queries_total", "Queries.", "datname"), prometheus.CounterValue, map[string]string{"": "total_query_count"}, 1},
		{described("wait_seconds_total", "Time that clients waited for a connection to the server.", "datname"), prometheus.CounterValue, map[string]string{"": "total_wait_time"}, 1e-6},
	}
	waiting = described("waiting", "Whether all clients wait for a server: the leader, or a standby.")
	waits   = described("waits_total", "How often all clients waited for a server, by why.", "cause")
)

// Describe what is measured.
func (k *Keeper) Describe(ch chan<- *prometheus.Desc) {
	for _, ms := range [][]metric{pools, totals} {
		for _, m := range ms {
			ch <- m.desc
		}
	}
	ch <- waiting
	ch <- waits
}

// Collect what PgBouncer shows now.
func (k *Keeper) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	var is float64
	if k.Waits() {
		is = 1
	}
	ch <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, is)
	for _, cause := range []string{Handover, Loss} {
		ch <- prometheus.MustNewConstMetric(waits, prometheus.CounterValue, k.Waited(cause), cause)
	}
	for command, show := range map[string]struct {
		metrics []metric
		labels  []string
	}{"SHOW POOLS": {pools, []string{"database", "user"}}, "SHOW STATS": {totals, []string{"database"}}} {
		rows, err := k.Console.table(ctx, command)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(show.metrics[0].desc, err)
			continue
		}
		for _, row := range rows {
			if row["database"] == own {
				continue // the console
			}
			labels := make([]string, 0, len(show.labels))
			for _, l := range show.labels {
				labels = append(labels, row[l])
			}
			for _, m := range show.metrics {
				m.collect(ch, row, labels)
			}
		}
	}
}

func (m metric) collect(ch chan<- prometheus.Metric, row map[string]string, labels []string) {
	for state, column := range m.columns {
		n, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(m.desc, fmt.Errorf("PgBouncer shows no %s: %w", column, err))
			continue
		}
		all := labels
		if state != "" {
			all = append(append([]string{}, labels...), state)
		}
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, n*m.scale, all...)
	}
}

// ServeMetrics until the context ends.
func ServeMetrics(ctx context.Context, address string, k *Keeper) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(k); err != nil {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 10 * time.Second}))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen for metrics: %w", err)
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second})
}
