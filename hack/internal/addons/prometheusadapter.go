// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/pki"
)

// prometheusAdapter hands what Prometheus knows to autoscalers, by the rules that a platform team gets from us.
type prometheusAdapter struct{}

func (prometheusAdapter) Name() string { return "prometheus-adapter" }

func (prometheusAdapter) Tools() []string { return []string{"prometheus-adapter"} }

func (prometheusAdapter) Apply(ctx context.Context, env *Env) error {
	ref, err := env.Image(ctx, "prometheus-adapter", "adapter", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(env.Builder.Source, "..", "package", "monitoring", "adapter.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read the rules of prometheus-adapter: %w", err)
	}
	// JSON is YAML on one line.
	quoted, err := json.Marshal(string(config))
	if err != nil {
		return fmt.Errorf("cannot quote the rules of prometheus-adapter: %w", err)
	}
	sum := sha256.Sum256(config)
	fresh, err := newAdapterSecrets()
	if err != nil {
		return err
	}
	// A new certificate would be refused until the kubelet has brought it to the pod.
	secrets, err := keep(ctx, env, monitoringNamespace, fresh)
	if err != nil {
		return err
	}
	return env.Apply(ctx, "prometheus-adapter.yaml", map[string]any{
		"Image": ref, "Config": string(quoted), "Checksum": hex.EncodeToString(sum[:]), "TLS": encodeTLS(secrets[adapterTLS]),
	})
}

// WaitReady waits until the API is served, too: an APIService that fails blocks the deletion of every namespace.
func (prometheusAdapter) WaitReady(ctx context.Context, env *Env) error {
	if err := env.Rollout(ctx, monitoringNamespace, "prometheus-adapter"); err != nil {
		return err
	}
	_, err := env.Kubectl(ctx, "wait", "--for=condition=Available", "--timeout=1m", "apiservice/v1beta1.external.metrics.k8s.io")
	return err
}

// adapterTLS is the Secret with the certificate of prometheus-adapter.
const adapterTLS = "prometheus-adapter-tls"

// newAdapterSecrets returns a certificate and its authority, which the API server trusts.
func newAdapterSecrets() (map[string]map[string][]byte, error) {
	authority, err := pki.NewAuthority("capstan-prometheus-adapter")
	if err != nil {
		return nil, err
	}
	name := "prometheus-adapter." + monitoringNamespace
	server, err := authority.Issue(pki.Request{User: name, Names: []string{name, name + ".svc", name + ".svc.cluster.local"}})
	if err != nil {
		return nil, err
	}
	return map[string]map[string][]byte{
		adapterTLS: {"ca.crt": authority.Cert, "tls.crt": server.Cert, "tls.key": server.Key},
	}, nil
}
