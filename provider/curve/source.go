// SPDX-License-Identifier: Apache-2.0

package curve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

// Options of a Source.
type Options struct {
	// URL of Prometheus, with its path if it has one.
	URL string

	// CAFile has the authorities of its certificate. Default: the authorities of the system.
	CAFile string

	// TokenFile has a token for it, which is read again for each request. Default: none.
	TokenFile string
}

// A Source of curves is a Prometheus, or what speaks its HTTP API.
type Source struct{ prometheus promq.RangeQuerier }

// Open a Source. It sends nothing yet.
func Open(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the address of Prometheus: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "":
		return nil, fmt.Errorf("the address %q has to be an http or https URL of a host, without user and query, for instance https://prometheus.example.org", u.Redacted())
	case u.Scheme == "http" && o.TokenFile != "":
		return nil, errors.New("the address of Prometheus has to begin with https, because a token would travel there in clear text")
	}
	ca := []byte{}
	if o.CAFile != "" {
		if ca, err = os.ReadFile(o.CAFile); err != nil {
			return nil, fmt.Errorf("cannot read the authorities of Prometheus: %w", err)
		}
	}
	h, err := outside.NewPlatformClient(outside.Prometheus, string(ca))
	if err != nil {
		return nil, fmt.Errorf("cannot use %q: %w", o.CAFile, err)
	}
	authorize, err := authorizing(o)
	if err != nil {
		return nil, err
	}
	c, err := prometheus.New(&outside.Connection{
		Backend: outside.Prometheus, Shared: true, Prometheus: &v1alpha1.PrometheusConfig{URL: o.URL}, Authorize: authorize, HTTP: h,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus: %w", err)
	}
	return &Source{prometheus: c}, nil
}

// authorizing puts the token, if there is one, into requests. Kubernetes replaces such tokens now and then.
func authorizing(o Options) (func(*http.Request), error) {
	if o.TokenFile == "" {
		return func(*http.Request) {}, nil
	}
	if _, err := os.ReadFile(o.TokenFile); err != nil {
		return nil, fmt.Errorf("cannot read the token for Prometheus: %w", err)
	}
	return func(r *http.Request) {
		// Without it Prometheus refuses the request, which is reported.
		if token, err := os.ReadFile(o.TokenFile); err == nil {
			r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
	}, nil
}
