// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

const (
	certManagerNamespace = "cert-manager"
	// certManagerAuthority is the Secret in which the webhook keeps the authority of its own certificate.
	certManagerAuthority = "cert-manager-webhook-ca"
)

// certManager issues the certificates that namespaces ask for, from authorities of their own. It is the official chart, with the
// issuers ca and selfSigned.
type certManager struct{}

func (certManager) Name() string { return "cert-manager" }

func (certManager) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "cert-manager")
	if err != nil {
		return err
	}
	version, err := env.Builder.Version("cert-manager")
	if err != nil {
		return err
	}
	images := map[string]string{}
	// The program does what it is called as.
	for _, name := range []string{"controller", "webhook"} {
		ref, err := env.ImageAs(ctx, "cert-manager-"+name, "/"+name, "cert-manager", "capstan", image.Spec{User: "65532"})
		if err != nil {
			return err
		}
		images[name], _, _ = strings.Cut(ref, ":"+version)
	}
	tmp, err := os.MkdirTemp("", "capstan-chart-")
	if err != nil {
		return fmt.Errorf("cannot make room for the chart: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	number := strings.TrimPrefix(version, "v")
	if _, err := env.Helm(ctx, "package", filepath.Join(source, "deploy", "charts", "cert-manager"),
		"--destination="+tmp, "--version="+number, "--app-version="+version); err != nil {
		return err
	}
	_, err = env.Helm(ctx, "upgrade", "--install", "cert-manager", filepath.Join(tmp, "cert-manager-"+number+".tgz"),
		"--namespace="+certManagerNamespace, "--create-namespace", "--set=crds.enabled=true",
		"--set=image.repository="+images["controller"], "--set=webhook.image.repository="+images["webhook"],
		"--set=resources.requests.cpu=10m", "--set=resources.requests.memory=32Mi",
		"--set=webhook.resources.requests.cpu=10m", "--set=webhook.resources.requests.memory=32Mi",
		// WaitReady does what these would.
		"--set=cainjector.enabled=false", "--set=startupapicheck.enabled=false")
	return err
}

// WaitReady also tells the API server which authority to trust the webhook by, which is all that there is for cainjector to do.
func (certManager) WaitReady(ctx context.Context, env *Env) error {
	if _, err := env.Kubectl(ctx, "wait", "--for=create", "--timeout=5m", "-n", certManagerNamespace, "secret/"+certManagerAuthority); err != nil {
		return err
	}
	authority, err := env.Kubectl(ctx, "get", "secret", certManagerAuthority, "-n", certManagerNamespace, `--output=jsonpath={.data.ca\.crt}`)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": %q}]`, authority)
	for _, kind := range []string{"mutating", "validating"} {
		if _, err := env.Kubectl(ctx, "patch", kind+"webhookconfiguration", "cert-manager-webhook", "--type=json", "--patch="+patch); err != nil {
			return err
		}
	}
	for _, deployment := range []string{"cert-manager", "cert-manager-webhook"} {
		if err := env.Rollout(ctx, certManagerNamespace, deployment); err != nil {
			return err
		}
	}
	return nil
}
