// SPDX-License-Identifier: Apache-2.0

// prometheus-adapter for external metrics, which are all that autoscalers of this cluster read. Its own main package was written for
// an older library of the API server than the one all programs of this module share.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	prom "sigs.k8s.io/prometheus-adapter/pkg/client"
	"sigs.k8s.io/prometheus-adapter/pkg/config"
	external "sigs.k8s.io/prometheus-adapter/pkg/external-provider"
	"sigs.k8s.io/prometheus-adapter/pkg/naming"
)

// adapter has the flags of upstream's program that the manifest uses.
type adapter struct {
	cmd.AdapterBase

	prometheusURL, configFile string
	relist, maxAge            time.Duration
}

func main() {
	logs.InitLogs()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		klog.ErrorS(err, "cannot run")
		klog.Flush()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	a := &adapter{AdapterBase: cmd.AdapterBase{Name: "prometheus-metrics-adapter"}}
	a.Flags().StringVar(&a.prometheusURL, "prometheus-url", "", "URL of Prometheus")
	a.Flags().StringVar(&a.configFile, "config", "", "file with the rules of external metrics")
	a.Flags().DurationVar(&a.relist, "metrics-relist-interval", 10*time.Minute, "how often series are listed")
	a.Flags().DurationVar(&a.maxAge, "metrics-max-age", 10*time.Minute, "how far back a series counts as present; at least the interval")
	logs.AddFlags(a.Flags())
	if err := a.Flags().Parse(args); err != nil {
		return fmt.Errorf("cannot parse flags: %w", err)
	}
	if a.maxAge < a.relist {
		return errors.New("cannot list series: --metrics-max-age must be at least --metrics-relist-interval")
	}
	base, err := url.Parse(a.prometheusURL)
	if err != nil {
		return fmt.Errorf("cannot parse --prometheus-url: %w", err)
	}
	rules, err := config.FromFile(a.configFile)
	if err != nil {
		return fmt.Errorf("cannot read --config: %w", err)
	}
	mapper, err := a.RESTMapper()
	if err != nil {
		return fmt.Errorf("cannot map kinds to resources: %w", err)
	}
	namers, err := naming.NamersFromConfig(rules.ExternalRules, mapper)
	if err != nil {
		return fmt.Errorf("cannot name metrics: %w", err)
	}
	client := prom.NewClientForAPI(patient{prom.NewGenericAPIClient(http.DefaultClient, base, nil)}, http.MethodGet)
	provider, lister := external.NewExternalPrometheusProvider(client, namers, a.relist, a.maxAge)
	lister.RunUntil(ctx.Done())
	a.WithExternalMetrics(provider)
	return a.Run(ctx)
}

// patient asks without the parameter timeout. The library computes it with the wrong sign from the deadline that requests to a newer
// API server have, and Prometheus refuses that. The deadline ends the request all the same.
type patient struct{ prom.GenericAPIClient }

// Do asks Prometheus.
func (p patient) Do(ctx context.Context, verb, endpoint string, query url.Values) (prom.APIResponse, error) {
	query.Del("timeout")
	return p.GenericAPIClient.Do(ctx, verb, endpoint, query)
}
