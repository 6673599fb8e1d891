// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/pki"
)

const (
	kueueNamespace = "kueue-system"
	// kueueTLS is the Secret with the certificate of its webhooks.
	kueueTLS = "webhook"
)

// kueue admits Jobs with the label of a queue: by webhooks, which suspend them, and by a controller, which lets them run. Of the kinds that
// it knows it looks after Jobs only. Its module has its definitions and its rights.
type kueue struct{}

func (kueue) Name() string { return "kueue" }

func (kueue) Tools() []string { return []string{"kueue"} }

func (kueue) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "kueue")
	if err != nil {
		return err
	}
	components := filepath.Join(source, "config", "components")
	definitions, err := filepath.Glob(filepath.Join(components, "crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("cannot find the definitions of Kueue in %s", components)
	}
	if err := env.Define(ctx, definitions...); err != nil {
		return err
	}
	role, err := os.ReadFile(filepath.Join(components, "rbac", "role.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read the rights of Kueue: %w", err)
	}
	if _, err := env.apply(ctx, kueueRole(role), "-"); err != nil {
		return err
	}
	ref, err := env.Image(ctx, "kueue", "kueue", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	fresh, err := newKueueSecrets()
	if err != nil {
		return err
	}
	secrets, err := keep(ctx, env, kueueNamespace, fresh)
	if err != nil {
		return err
	}
	return env.Apply(ctx, "kueue.yaml", map[string]any{
		"Image": ref, "TLS": encodeTLS(secrets[kueueTLS]), "Webhooks": kueueWebhooks(), "Configurations": kueueConfigurations(),
	})
}

func (kueue) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, kueueNamespace, "kueue")
}

// kueueRole is the ClusterRole of the module under a name that says whose it is.
func kueueRole(role []byte) []byte {
	return []byte(strings.Replace(string(role), "name: manager-role", "name: capstan:kueue", 1))
}

func newKueueSecrets() (map[string]map[string][]byte, error) {
	authority, err := pki.NewAuthority("capstan-kueue")
	if err != nil {
		return nil, err
	}
	name := "webhook." + kueueNamespace + ".svc"
	server, err := authority.Issue(pki.Request{User: "kueue", Names: []string{name}})
	if err != nil {
		return nil, err
	}
	return map[string]map[string][]byte{kueueTLS: {"ca.crt": authority.Cert, "tls.crt": server.Cert, "tls.key": server.Key}}, nil
}

// kueueConfigurations are the kinds of objects that name the webhooks, by the verbs in their paths.
func kueueConfigurations() map[string]string {
	return map[string]string{"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
}

// A kueueWebhook is a webhook for one kind.
type kueueWebhook struct{ Group, Version, Plural, Kind string }

// kueueWebhooks are those for Jobs and for Kueue's own kinds. The other kinds of its module are not in the cluster.
func kueueWebhooks() []kueueWebhook {
	own := func(plural, kind string) kueueWebhook { return kueueWebhook{"kueue.x-k8s.io", "v1beta2", plural, kind} }
	return []kueueWebhook{
		{"batch", "v1", "jobs", "job"},
		own("clusterqueues", "clusterqueue"), own("resourceflavors", "resourceflavor"), own("workloads", "workload"),
	}
}

// Path of the webhook that the program serves.
func (w kueueWebhook) Path(verb string) string {
	return "/" + verb + "-" + strings.ReplaceAll(w.Group, ".", "-") + "-" + w.Version + "-" + w.Kind
}
