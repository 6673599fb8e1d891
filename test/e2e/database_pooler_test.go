// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// byPooler makes a writer connect through the poolers.
const byPooler = "pooler"

// poolerLabel is on the pods of poolers.
const poolerLabel = "capstan.dev/pooler"

// writeThrough the poolers until the test ends. The writer waits longer than a change of the leader takes, like an
// application.
func writeThrough(t *testing.T, d *v1alpha1.Database, name string) writer {
	t.Helper()
	p := clientOf(d, name, "writer", writerImage())
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](120)
	p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "POOLER_URI", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: d.Name + "-writer"}, Key: "pooler-uri"},
	}})
	p.Spec.Containers[0].Args = []string{"--uri=$(POOLER_URI)", "--name=" + name, "--timeout=30s", "--for=3h"}
	start(t, p)
	w := writer{pod: p, way: byPooler}
	eventually(t, name+" writes", func(ctx context.Context) error {
		said := logs(ctx, p, "client", 0)
		if !slices.ContainsFunc(parse(said), func(l line) bool { return l.First != "" }) {
			return fmt.Errorf("it says %q", said)
		}

		return nil
	})

	return w
}

// poolersOf a Database, by name.
func poolersOf(ctx context.Context, t *testing.T, d *v1alpha1.Database) map[string]corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{poolerLabel: d.Name}); err != nil {
		t.Fatal(err)
	}
	out := map[string]corev1.Pod{}
	for _, p := range list.Items {
		out[p.Name] = p
	}

	return out
}

// TestDatabasePooler: clients of poolers wait through a clean change of the leader, and see no error.
func TestDatabasePooler(t *testing.T) {
	d := database(namespace(t), "pooled", func(d *v1alpha1.Database) {
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "writer"}, {Name: "app"}}
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))

	before := statefulSets(t, d)
	d.Spec.Pooler = &v1alpha1.DatabasePooler{}
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "both poolers take clients", databaseCondition(d, v1alpha1.TypePooled, corev1.ConditionTrue, v1alpha1.ReasonPooling))
	for name, generation := range statefulSets(t, d) {
		if before[name] != generation {
			t.Errorf("StatefulSet %s changed from generation %d to %d for the poolers", name, before[name], generation)
		}
	}

	t.Run("Logins", func(t *testing.T) { poolerLogins(t, d) })
	writers := []writer{writeThrough(t, d, "pooled-1"), writeThrough(t, d, "pooled-2"), writeThrough(t, d, "pooled-3")}
	for _, step := range []struct {
		name string
		do   func(t *testing.T, leader corev1.Pod)
	}{
		{"Switchover", func(t *testing.T, leader corev1.Pod) {
			t.Helper()
			out, err := execIn(t.Context(), &leader, "postgres", "", "/usr/local/bin/capstan-member", "handover")
			if err != nil {
				t.Fatalf("cannot hand over: %v: %s", err, out)
			}
		}},
		{"PodDeleted", func(t *testing.T, leader corev1.Pod) {
			t.Helper()
			if err := kube.Delete(t.Context(), &leader); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			within(t, creation, "all members are well", running(d))
			since, before := time.Now(), leader(t, d)
			step.do(t, before)
			within(t, timeout, "there is another leader", func(context.Context) error {
				if now := leader(t, d); now.UID == before.UID {
					return fmt.Errorf("%s is still the leader", now.Name)
				}

				return nil
			})
			within(t, creation, "all members are well", running(d))
			for _, w := range writers {
				gaps := w.gapsSince(t.Context(), since)
				t.Logf("%s waited for %.1f s at most", w.pod.Name, longest(gaps))
				if most := longest(gaps); most > 5+slack {
					t.Errorf("%s waited for %.1f s, want 5 s and %.0f s of slack at most", w.pod.Name, most, slack)
				}
				for _, g := range gaps {
					if g.Error != "" {
						t.Errorf("%s had an error: %s", w.pod.Name, g.Error)
					}
				}
			}
		})
	}
	t.Run("Sizes", func(t *testing.T) { poolerSizes(t, d) })
	t.Run("Expose", func(t *testing.T) { exposedAtLast(t, d) })

	for _, w := range writers {
		a := w.end(t)
		t.Logf("%s: %d rows acknowledged, %d failed, %d lost, longest gap %.1f s, errors %v", w.pod.Name, a.Acknowledged, a.Failed, len(a.Lost), a.Longest, a.Errors)
		if a.Failed > 0 || len(a.Lost) > 0 {
			t.Errorf("%s: %d writes failed and %d are lost, want none", w.pod.Name, a.Failed, len(a.Lost))
		}
	}
}

// poolerLogins: consumers log in over TLS with the content of their Secret, and no other client can look up passwords.
func poolerLogins(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	s := psql(t, d, "app")
	host := fmt.Sprintf("%s-pooler.%s.svc", d.Name, d.Namespace)
	through := func(options string) (string, error) {
		return execIn(t.Context(), s.pod, "client", "", "psql", "-X", "-q", "-t", "-A", "-c", "select current_user || ' ' || inet_server_port()", "host="+host+" "+options)
	}
	if out, err := through("dbname=pooled"); err != nil || !strings.Contains(out, "pooled_owner 5432") {
		t.Errorf("a consumer through the pooler: %v: %s, want the owner of its database", err, out)
	}
	for _, options := range []string{"user=pooler password='' dbname=postgres", "user=postgres dbname=pooled", "user=capstan dbname=pooled", "dbname=pooled sslmode=disable"} {
		if out, err := through(options); err == nil {
			t.Errorf("%s could log in: %s", options, out)
		}
	}
	s.end(t)
}

// poolerSizes are reloaded, and no pooler restarts for them.
func poolerSizes(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	before := poolersOf(t.Context(), t, d)
	d.Spec.Pooler.PoolSize = ptr.To[int32](7)
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "PgBouncer read the new size", func(ctx context.Context) error {
		for _, p := range poolersOf(ctx, t, d) {
			if said := logs(ctx, &p, "pooler", 0); !strings.Contains(said, "configuration or certificates changed") {
				return fmt.Errorf("pooler %s did not yet", p.Name)
			}
		}

		return nil
	})
	after := poolersOf(t.Context(), t, d)
	for name, p := range before {
		if after[name].UID != p.UID || after[name].Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pooler %s was restarted", name)
		}
	}
}

// exposedAtLast: without a load balancer the condition reports that, and with one its address is in the status and in
// the certificate.
func exposedAtLast(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	d.Spec.Expose = &v1alpha1.DatabaseExpose{SourceRanges: []v1alpha1.SourceRange{"203.0.113.0/24"}}
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is no address yet", databaseCondition(d, v1alpha1.TypeExposed, corev1.ConditionFalse, v1alpha1.ReasonAddressPending))

	// The embedded cluster has no controller for load balancers: this does its work.
	service, err := get(t.Context(), &corev1.Service{}, d.Namespace, d.Name+"-external")
	if err != nil {
		t.Fatal(err)
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.7"}}
	if err := kube.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "the address is reported", databaseCondition(d, v1alpha1.TypeExposed, corev1.ConditionTrue, v1alpha1.ReasonAddressAssigned, "198.51.100.7:5432"))
	within(t, timeout, "Secrets of consumers have the address", func(ctx context.Context) error {
		secret, err := get(ctx, &corev1.Secret{}, d.Namespace, d.Name+"-app")
		if err != nil {
			return err
		}
		if got := string(secret.Data["external-host"]); got != "198.51.100.7" {
			return fmt.Errorf("external-host is %q", got)
		}

		return nil
	})
}
