// SPDX-License-Identifier: Apache-2.0

// Command console is capstan-console: pages to see, create, edit and operate what Capstan runs. It has no rights of its own. Each request to
// the API server has the token of the user whose page it is for.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
	"github.com/capstan-dev/capstan/console/internal/web"
	"github.com/capstan-dev/capstan/provider/curve"
)

// version is set by the linker.
var version = "v0.0.0"

type command struct {
	Listen     string           `default:"127.0.0.1:8080"                                                                                             help:"Address to listen on."`
	URL        string           `default:"http://localhost:8080"                                                                                      help:"Address at which browsers reach the console. It needs https, except on localhost."`
	Server     string           `help:"Address of the API server, with --ca. Default: the address in the kubeconfig, whose credentials are not used."`
	CA         string           `help:"File with the certificate authority of the API server."                                                        name:"ca"`
	Kubeconfig string           `help:"Kubeconfig with the address of the API server. Default: the usual one."`
	SessionKey string           `help:"File with at least 32 random bytes that encrypt sessions. Default: random, so that a restart ends all logins."`
	Issuer     string           `help:"OIDC issuer that the API server trusts. Default: people paste a token."`
	Client     string           `help:"OIDC client ID."`
	SecretFile string           `help:"File with the secret of the OIDC client. Default: a public client."`
	Scopes     []string         `default:"profile,email,groups"                                                                                       help:"OIDC scopes beside openid."`
	Paste      bool             `help:"Also let people log in with a token that they paste. Default with an issuer: not."`
	TLSCert    string           `help:"File with a certificate, to serve TLS."`
	TLSKey     string           `help:"File with its key."`
	Prometheus string           `help:"Address of the platform's Prometheus, for the curves of Algorithms. Default: no curves."`
	PromCA     string           `help:"File with the certificate authority of Prometheus. Default: the authorities of the system."                    name:"prometheus-ca"`
	PromToken  string           `help:"File with a token for Prometheus. It needs https."                                                             name:"prometheus-token-file"`
	Streams    int              `default:"500"                                                                                                        help:"How many pages can be live at the same time. A user has at most a fifth."`
	Version    kong.VersionFlag `help:"Print the version."`
}

func main() {
	var cmd command
	kong.Parse(&cmd, kong.Name("capstan-console"), kong.Description("Pages to see and operate what Capstan runs."), kong.Vars{"version": version})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.run(ctx, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capstan-console:", err)
		os.Exit(1)
	}
}

func (c *command) run(ctx context.Context, log *slog.Logger) error {
	address, err := url.Parse(strings.TrimSuffix(c.URL, "/"))
	if err != nil {
		return fmt.Errorf("cannot read --url: %w", err)
	}
	if err := web.CheckURL(address); err != nil {
		return fmt.Errorf("cannot serve at --url: %w", err)
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	sessions, err := session.New(key, address.Scheme == "https")
	if err != nil {
		return fmt.Errorf("cannot use --session-key: %w", err)
	}
	provider, err := c.oidc(ctx, address)
	if err != nil {
		return err
	}
	curves, err := c.curves()
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: c.Listen,
		Handler: web.New(ctx, web.Options{
			URL: address, Kube: kube.NewServer(config), Sessions: sessions, OIDC: provider, Paste: c.Paste || provider == nil, Streams: c.Streams, Curves: curves, Log: log, Version: version,
		}),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	log.Info("serving", "version", version, "listen", c.Listen, "url", c.URL, "apiServer", config.Host)
	failed := make(chan error, 1)
	go func() {
		if c.TLSCert != "" {
			failed <- server.ListenAndServeTLS(c.TLSCert, c.TLSKey)

			return
		}
		failed <- server.ListenAndServe()
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(late); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot stop: %w", err)
	}

	return nil
}

// config of the API server. Its credentials are left out later.
func (c *command) config() (*rest.Config, error) {
	if c.Server != "" {
		return &rest.Config{Host: c.Server, TLSClientConfig: rest.TLSClientConfig{CAFile: c.CA}}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: set --server and --ca, or --kubeconfig: %w", err)
	}

	return config, nil
}

func (c *command) key() ([]byte, error) {
	if c.SessionKey == "" {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // It never fails.

		return key, nil
	}
	key, err := os.ReadFile(c.SessionKey)
	if err != nil {
		return nil, fmt.Errorf("cannot read --session-key: %w", err)
	}

	return key, nil
}

func (c *command) oidc(ctx context.Context, address *url.URL) (*web.OIDC, error) {
	if c.Issuer == "" {
		return nil, nil //nolint:nilnil // People paste a token.
	}
	secret := []byte{}
	if c.SecretFile != "" {
		var err error
		if secret, err = os.ReadFile(c.SecretFile); err != nil {
			return nil, fmt.Errorf("cannot read --secret-file: %w", err)
		}
	}

	return web.NewOIDC(ctx, c.Issuer, c.Client, strings.TrimSpace(string(secret)), address.JoinPath("login", "callback").String(), c.Scopes) //nolint:wrapcheck // It says what.
}

func (c *command) curves() (*curve.Source, error) {
	if c.Prometheus == "" {
		return nil, nil //nolint:nilnil // Pages have no curves.
	}
	source, err := curve.Open(curve.Options{URL: c.Prometheus, CAFile: c.PromCA, TokenFile: c.PromToken})
	if err != nil {
		return nil, fmt.Errorf("cannot use --prometheus: %w", err)
	}

	return source, nil
}
