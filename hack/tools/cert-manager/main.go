// SPDX-License-Identifier: Apache-2.0

// cert-manager in one program: what it is called as decides whether it is its controller or its webhook. It has the issuers
// ca and selfSigned; issuers of clouds and of ACME link SDKs that are most of what there would be to compile. It runs once, so
// nothing elects a leader.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// workers of each controller, as upstream has it.
const workers = 5

func main() {
	logs.InitLogs()
	defer logs.FlushLogs()
	ctrl.SetLogger(logs.Log)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = logs.NewContext(ctx, logs.Log)

	run := runController
	if filepath.Base(os.Args[0]) == "webhook" {
		run = runWebhook
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		logs.Log.Error(err, "cannot run")
		os.Exit(1)
	}
}

// runController takes upstream's flags that matter to these issuers, and lets pass what the chart gives beyond them.
func runController(ctx context.Context, args []string) error {
	opts := controller.ContextOptions{
		KubernetesAPIQPS: 20, KubernetesAPIBurst: 50,
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&opts.ClusterResourceNamespace, "cluster-resource-namespace", "kube-system", "where the Secrets of a ClusterIssuer are")
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "for use outside of a cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, opts)
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("cannot build clients: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	listener, err := net.Listen("tcp", ":9402")
	if err != nil {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	for name, construct := range controller.Known() {
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("cannot construct controller %q: %w", name, err)
		}
		group.Go(func() error { return c.Run(workers, ctx) })
	}
	// After the controllers, which bring what it serves.
	metrics := shared.Metrics.NewServer(listener)
	group.Go(func() error { return until(ctx, metrics, func() error { return metrics.Serve(listener) }) })
	health := &http.Server{Addr: ":9403", Handler: http.HandlerFunc(healthy), ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error { return until(ctx, health, health.ListenAndServe) })
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return group.Wait()
}

func healthy(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

// until serves until the context ends.
func until(ctx context.Context, server *http.Server, serve func() error) error {
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := serve(); ctx.Err() == nil {
		return err
	}
	return nil
}

func runWebhook(ctx context.Context, args []string) error {
	config, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	options.AddConfigFlags(flags, config)
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := webhook.NewCertManagerWebhookServer(logs.Log, *config)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
