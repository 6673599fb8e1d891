// SPDX-License-Identifier: Apache-2.0

// Command provider reconciles the managed resources of Capstan: it observes and acts, and leaves every decision to the function.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	// The image holds nothing but the program: without these, no public service could be trusted, and every one would need a
	// caBundle.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version is set by the linker when a package is built.
var version = "dev"

// CLI holds the flags of the provider.
type CLI struct {
	Debug bool `env:"DEBUG" help:"Log every reconcile." short:"d"`

	PollInterval     time.Duration `default:"10m" env:"POLL_INTERVAL"      help:"How often what is ready is compared with the outside."`
	MaxReconcileRate int           `default:"20"  env:"MAX_RECONCILE_RATE" help:"Reconciles per second of each kind, apart from Analysis, Run and Topology."`
	MaxLookRate      int           `default:"100" env:"MAX_LOOK_RATE"      help:"Reconciles per second of Analyses, and as many of Runs and of Topologies."`

	AllowTenantCIDR []string `env:"ALLOW_TENANT_CIDR" help:"Address ranges that URLs of tenants may lead to although they are private, loopback, link-local, metadata or API server addresses."               sep:","`
	AllowTenantHost []string `env:"ALLOW_TENANT_HOST" help:"Hosts, or *. and the end of hosts, that URLs of tenants may have although they lead to private addresses. {namespace} is the tenant's namespace." sep:","`

	EventsAddress        string `default:":8082"              env:"EVENTS_ADDRESS"                                                        help:"Address that receives events for Receivers; empty receives none."`
	EventsCertificateDir string `env:"EVENTS_CERTIFICATE_DIR" help:"Folder with tls.crt and tls.key for that address; empty serves HTTP."`

	LeaderElection bool `default:"true" env:"LEADER_ELECTION" help:"Act only while holding a Lease." negatable:""`

	MetricsAddress string `default:":8080" env:"METRICS_ADDRESS" help:"Address of /metrics; 0 serves none."`
	HealthAddress  string `default:":8081" env:"HEALTH_ADDRESS"  help:"Address of /livez and /readyz; 0 serves none."`

	ChangeLogSocket string `env:"CHANGE_LOG_SOCKET" help:"Unix socket of a change log sidecar that receives every change."`
}

// Validate the flags.
func (c *CLI) Validate() error {
	if c.PollInterval < time.Second {
		return fmt.Errorf("poll interval %s is shorter than a second", c.PollInterval)
	}
	if c.MaxReconcileRate < 1 {
		return fmt.Errorf("max reconcile rate %d is not positive", c.MaxReconcileRate)
	}
	if c.MaxLookRate < 1 {
		return fmt.Errorf("max look rate %d is not positive", c.MaxLookRate)
	}
	if _, err := c.allowed(); err != nil {
		return err
	}
	for _, h := range c.AllowTenantHost {
		name := strings.ReplaceAll(strings.TrimPrefix(h, "*."), "{namespace}", "a")
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			return fmt.Errorf("cannot use host %q, want for instance *.tools.svc: %s", h, strings.Join(errs, ", and "))
		}
	}
	return nil
}

// allowed addresses for tenants.
func (c *CLI) allowed() ([]netip.Prefix, error) {
	all := make([]netip.Prefix, 0, len(c.AllowTenantCIDR))
	for _, s := range c.AllowTenantCIDR {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("cannot use address range %q, want for instance 10.0.0.0/8: %w", s, err)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

func main() {
	c := &CLI{}
	kong.Parse(c, kong.Name("provider-capstan"), kong.Description("The managed resources of Capstan."))
	ctrl.SetLogger(c.logger(os.Stderr))
	ctrl.Log.Info("Starting", "version", version)
	if err := c.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "provider-capstan:", err)
		os.Exit(1)
	}
}

// logger of one JSON object a line.
func (c *CLI) logger(w io.Writer) logr.Logger {
	level := slog.LevelInfo
	if c.Debug {
		level = slog.LevelDebug
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: level,
		// controller-runtime logs its sources, which hold functions that JSON does not know.
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Key == "source" {
				a.Value = slog.StringValue(s.String())
			}
			return a
		},
	}))
}

// Run the provider until ctx ends or it cannot continue.
func (c *CLI) Run(ctx context.Context) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the cluster: %w", err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	mgr, err := c.manager(ctx, cfg, fail)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot run: %w", err)
	}
	return failure(ctx)
}

// failure that ended ctx, if any: a signal to stop is none.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); err != ctx.Err() { //nolint:errorlint // The very same value, or another.
		return err
	}
	return nil
}
