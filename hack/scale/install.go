// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/cluster"

	_ "embed"
)

//go:embed platform.yaml
var platform []byte

// functionName is what the Compositions call the function.
const functionName = "capstan-dev-function-capstan"

// install what packages would, from this tree, and return when an Algorithm can have all its objects.
func install(ctx context.Context, b cluster.Bare, p plane) error {
	definitions, err := definitions(ctx, b, p.root)
	if err != nil {
		return err
	}
	if err := b.Define(ctx, definitions...); err != nil {
		return err
	}
	own := filepath.Join(b.Dir, "platform.yaml")
	if err := os.WriteFile(own, platform, 0o600); err != nil {
		return fmt.Errorf("cannot write what the platform has: %w", err)
	}
	if err := apply(ctx, b, own); err != nil {
		return err
	}
	endpoint := fmt.Sprintf(`{"status":{"endpoint":%q,"capabilities":["composition"]}}`, functionAddress)
	if _, err := b.Kubectl(ctx, "patch", "functionrevision", functionName+"-0", "--subresource=status", "--type=merge", "--patch", endpoint); err != nil {
		return err
	}
	ours := []string{filepath.Join(p.root, "package", "platform.yaml")}
	for _, kind := range []string{"algorithm", "database", "experiment", "pipeline", "training"} {
		for _, file := range []string{"definition.yaml", "composition.yaml"} {
			ours = append(ours, filepath.Join(p.root, "apis", kind, file))
		}
	}
	if err := apply(ctx, b, ours...); err != nil {
		return err
	}
	// It looks only once at what it may do.
	if err := restart(b.Dir, provider); err != nil {
		return err
	}
	for _, wait := range [][]string{
		{"--for=condition=Established", "xrd", "--all"},
		// The provider says which kinds of others are there. Until then an Algorithm has no route, and no rules.
		{"--for=jsonpath={.data.kinds}", "environmentconfig/capstan-kinds"},
		{"--for=create", "compositionrevision", "-l", "crossplane.io/composition-name=algorithm"},
	} {
		if _, err := b.Kubectl(ctx, append([]string{"wait", "--timeout=3m"}, wait...)...); err != nil {
			return fmt.Errorf("cannot see Capstan installed: %w", err)
		}
	}
	config := filepath.Join(b.Dir, "connect.yaml")
	if err := os.WriteFile(config, p.outside(b.Identities.Cluster.Cert), 0o600); err != nil {
		return fmt.Errorf("cannot write how servers outside are reached: %w", err)
	}
	return apply(ctx, b, config)
}

// outside is how the provider reaches servers outside of the cluster, whose certificates an authority has signed.
func (p plane) outside(authority []byte) []byte {
	config := fmt.Appendf(nil, `apiVersion: capstan.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: prometheus}
spec: {prometheus: {url: "http://%s"}}
`, prometheus)
	if !p.s3 {
		return config
	}
	return fmt.Appendf(config, `---
apiVersion: v1
kind: Secret
metadata: {name: s3, namespace: crossplane-system}
stringData: {accessKeyId: %s, secretAccessKey: %s}
---
apiVersion: capstan.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: s3}
spec:
  s3:
    endpoint: "https://%s"
    region: us-east-1
    credentials: {secretRef: {name: s3}}
    caBundle: %q
`, s3Root, s3Root, s3Address, authority)
}

// definitions of custom resources: Crossplane's, the provider's, and others that Algorithms and Databases are made of.
func definitions(ctx context.Context, b cluster.Bare, root string) ([]string, error) {
	crossplane, err := b.Builder.ModuleDir(ctx, "crossplane")
	if err != nil {
		return nil, err
	}
	gateway, err := b.Builder.DependencyDir(ctx, "traefik", "sigs.k8s.io/gateway-api")
	if err != nil {
		return nil, err
	}
	operator, err := b.Builder.ModuleDir(ctx, "prometheus-operator")
	if err != nil {
		return nil, err
	}
	certManager, err := b.Builder.ModuleDir(ctx, "cert-manager")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, pattern := range []string{
		filepath.Join(crossplane, "cluster", "crds", "*.yaml"),
		filepath.Join(gateway, "config", "crd", "standard", "gateway.networking.k8s.io_*.yaml"),
		filepath.Join(operator, "example", "prometheus-operator-crd", "monitoring.coreos.com_servicemonitors.yaml"),
		filepath.Join(operator, "example", "prometheus-operator-crd", "monitoring.coreos.com_prometheusrules.yaml"),
		filepath.Join(certManager, "deploy", "crds", "*.yaml"),
		filepath.Join(root, "package", "provider", "crds", "*.yaml"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("cannot find definitions: nothing at %s", pattern)
		}
		files = append(files, found...)
	}
	return files, nil
}

// apply files. What a definition among them defines is there a moment later.
func apply(ctx context.Context, b cluster.Bare, files ...string) error {
	args := make([]string, 0, 3+len(files))
	args = append(args, "apply", "--server-side", "--force-conflicts")
	for _, f := range files {
		args = append(args, "--filename="+f)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		_, err := b.Kubectl(ctx, args...)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}
