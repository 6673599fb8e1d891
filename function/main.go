// SPDX-License-Identifier: Apache-2.0

// Package main is function-capstan: the composition function that turns an Algorithm or a Database into the objects that run it.
// It decides and never acts. It has no access to the cluster, no state, and sees no Secret.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/server"

	_ "time/tzdata" // Windows of maintenance have time zones, and the image has none.
)

// version is set by the linker when a package is built, and digests of the images beside it when it is released.
var (
	version = "dev"
	digests string
)

// released is the release that this function is of.
func released() release.Release { return release.Release{Version: version, Digests: digests} }

type cli struct {
	Debug bool `help:"Log every call, not only those that fail." short:"d"`

	Address     string   `default:":9443"                                                     help:"Address that Crossplane calls."`
	TLSCertsDir string   `env:"TLS_SERVER_CERTS_DIR"                                          help:"Folder with tls.crt, tls.key, and the ca.crt of clients."`
	TLSClients  []string `default:"crossplane.crossplane-system"                              help:"Names in the certificates of clients that may call. Crossplane's is its ServiceAccount, a dot, and its namespace."`
	Insecure    bool     `help:"Serve without certificates, to anybody. For local runs only."`

	HealthAddress  string `default:":8081" help:"Address of /livez and /readyz. Empty for none."`
	MetricsAddress string `default:":8080" help:"Address of /metrics. Empty for none."`

	DrainDelay   time.Duration `default:"5s"  help:"How long to continue to serve after a signal to end, until clients know."`
	DrainTimeout time.Duration `default:"20s" help:"How long running calls may take to end after that."`
}

// Run serves until the process gets a signal to end.
func (c *cli) Run() error {
	level := slog.LevelInfo
	if c.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	log.Info("Starting", "version", version)
	collectLater()
	fn := newFunction(kinds(), time.Now)
	names := make([]string, 0, len(fn.kinds))
	for gk := range fn.kinds {
		names = append(names, gk.Kind)
	}
	s, err := server.New(fn, server.Options{
		Log:            log,
		Kinds:          names,
		Address:        c.Address,
		CertsDir:       c.TLSCertsDir,
		Clients:        c.TLSClients,
		Insecure:       c.Insecure,
		HealthAddress:  c.HealthAddress,
		MetricsAddress: c.MetricsAddress,
		DrainDelay:     c.DrainDelay,
		DrainTimeout:   c.DrainTimeout,
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	return s.Run(ctx)
}

// collectLater lets the heap grow to three times what is in use before the collector runs, unless GOGC is set. Little is in use between
// calls, and a call leaves much behind: by Go's default the collector takes a quarter of the time. GOMEMLIMIT is a bound all the same.
func collectLater() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(200)
	}
}

func main() {
	ctx := kong.Parse(&cli{},
		kong.Name("function"),
		kong.Description("Composes the objects of Capstan's composite resources for Crossplane."),
		kong.DefaultEnvars("CAPSTAN"),
	)
	ctx.FatalIfErrorf(ctx.Run())
}
