// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

const (
	certManagerNamespace = "cert-manager"
	// certManagerAuthority is the Secret in which the webhook keeps the authority of its own certificate.
	certManagerAuthority = "cert-manager-webhook-ca"
)

// certManager issues the certificates that namespaces ask for, from authorities of their own. Its manifest is what the official chart
// renders (hack/charts), with the issuers ca and selfSigned.
type certManager struct{}

func (certManager) Name() string { return "cert-manager" }

func (certManager) Tools() []string { return []string{"cert-manager"} }

func (certManager) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "cert-manager")
	if err != nil {
		return err
	}
	definitions, err := filepath.Glob(filepath.Join(source, "deploy", "crds", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("cannot find the definitions of cert-manager in %s", source)
	}
	if err := env.Define(ctx, definitions...); err != nil {
		return err
	}
	images := map[string]any{}
	// The program does what it is called as.
	for _, name := range []string{"controller", "webhook"} {
		if images[name], err = env.ImageAs(ctx, "cert-manager-"+name, "/"+name, "cert-manager", "capstan", image.Spec{User: "65532"}); err != nil {
			return err
		}
	}
	return env.Apply(ctx, "cert-manager.yaml", images)
}

// WaitReady also gives the API server the authority of the webhook, which is all that there is for cainjector to do.
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
