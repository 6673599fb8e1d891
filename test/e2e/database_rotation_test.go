// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A visitor connects repeatedly with the content of the mounted Secret, and counts failures.
type visitor struct {
	*corev1.Pod

	key string
}

// visit a Database with the URI under a key of the Secret of its consumer app.
func visit(t *testing.T, d *v1alpha1.Database, key string) visitor {
	t.Helper()
	p := clientOf(d, "visitor-"+key, "app", postgresImage())
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	c := &p.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "KEY", Value: key})
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "secret", MountPath: "/etc/consumer", ReadOnly: true}, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
	p.Spec.Volumes = append(p.Spec.Volumes,
		corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: d.Name + "-app"}}},
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	// The user comes from the response, because the URI alone proves nothing. NetworkPolicies are enforced for a new
	// pod a moment after its start, and block it before.
	c.Command = []string{"sh", "-c", `good=0 bad=0
		while true; do
			if user=$(psql -XAtqc 'select session_user' "$(cat "/etc/consumer/$KEY")" 2>/tmp/why)
			then good=$((good + 1))
			elif [ "$good" -gt 0 ]
			then bad=$((bad + 1)); cat /tmp/why >>/tmp/failures
			fi
			echo "$good $bad $user" >/tmp/now && mv /tmp/now /tmp/account
			sleep 0.2
		done`}
	start(t, p)
	v := visitor{Pod: p, key: key}
	eventually(t, "the visitor by "+key+" is let in", func(ctx context.Context) error { return v.uses(ctx, "") })

	return v
}

// uses reports whether the visitor could log in with a login, or with any.
func (v visitor) uses(ctx context.Context, login string) error {
	out, err := execIn(ctx, v.Pod, "client", "", "cat", "/tmp/account")
	if f := strings.Fields(out); err != nil || len(f) != 3 || f[0] == "0" || login != "" && f[2] != login {
		return fmt.Errorf("by %s it has good, bad and login %q: %w", v.key, out, err)
	}

	return nil
}

// account of the visitor: how many attempts succeeded, and how many failed.
func (v visitor) account(t *testing.T) {
	t.Helper()
	out, err := execIn(t.Context(), v.Pod, "client", "", "sh", "-c", "cat /tmp/account; tail -n 5 /tmp/failures 2>/dev/null; true")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("by %s: good, bad and login: %s", v.key, out)
	if f := strings.Fields(out); len(f) < 2 || f[1] != "0" {
		t.Errorf("by %s some were not let in: %s", v.key, out)
	}
}

// hasLogin reports whether the Secret of consumer app has a login of a generation.
func hasLogin(d *v1alpha1.Database, login string, generation int64) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		for _, s := range got.Status.ConnectionSecrets {
			if s.Consumer == "app" && s.Login == login && s.Generation == generation && s.Ready {
				return nil
			}
		}

		return fmt.Errorf("status.connectionSecrets is %+v", got.Status.ConnectionSecrets)
	}
}

// TestDatabaseRotation: clients can connect at any time during a rotation of their login, and after the loss of their
// Secret. Hooks run around a change, and a failed hook stops it.
func TestDatabaseRotation(t *testing.T) {
	d := database(namespace(t), "rotated", func(d *v1alpha1.Database) {
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}}
		d.Spec.Pooler = &v1alpha1.DatabasePooler{}
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))
	within(t, creation, "both poolers take clients", databaseCondition(d, v1alpha1.TypePooled, corev1.ConditionTrue, v1alpha1.ReasonPooling))

	visitors := []visitor{visit(t, d, "uri"), visit(t, d, "pooler-uri")}
	arrive := func(login string) {
		t.Helper()
		for _, v := range visitors {
			within(t, creation, "the visitor by "+v.key+" uses "+login, func(ctx context.Context) error { return v.uses(ctx, login) })
		}
	}

	before := statefulSets(t, d)

	t.Run("Rotated", func(t *testing.T) {
		merge(t, d, `{"credentials":{"id":"first","overlap":"24h"}}`)
		eventually(t, "the Secret has the second login", hasLogin(d, "app-b", 2))
		arrive("app-b")
		eventually(t, "the first login overlaps", databaseCondition(d, v1alpha1.TypeCredentialsFresh, corev1.ConditionTrue, v1alpha1.ReasonCredentialsOverlap, "login app of consumer app"))
	})
	t.Run("Waits", func(t *testing.T) {
		merge(t, d, `{"credentials":{"id":"second"}}`)
		eventually(t, "the next rotation waits", databaseCondition(d, v1alpha1.TypeCredentialsFresh, corev1.ConditionFalse, v1alpha1.ReasonRotationWaits))
		// Both visitors have the second login by now. Five minutes are enough to read the next one.
		merge(t, d, `{"credentials":{"overlap":"5m"}}`)
		within(t, 2*creation, "the Secret has the first login again", hasLogin(d, "app", 3))
		arrive("app")
	})
	t.Run("SecretLost", func(t *testing.T) {
		merge(t, d, `{"credentials":{"overlap":"24h"}}`)
		if err := release(t.Context(), &corev1.SecretList{}, client.InNamespace(d.Namespace),
			client.MatchingLabels{credentialsv1alpha1.LabelCredential: d.Name + "-app"}); err != nil {
			t.Fatal(err)
		}
		// The provider checks a Credential every ten minutes.
		within(t, 2*creation, "the Secret is back with the second login", hasLogin(d, "app-b", 4))
		arrive("app-b")
	})
	for _, v := range visitors {
		v.account(t)
	}
	for name, generation := range statefulSets(t, d) {
		if before[name] != generation {
			t.Errorf("StatefulSet %s changed from generation %d to %d for a rotation", name, before[name], generation)
		}
	}
	t.Run("Hooks", func(t *testing.T) { hooked(t, d) })
}

// hooked: a failed hook stops a change before any member is touched. After its correction it runs once, and the hook in
// after runs at the end.
func hooked(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	s := psql(t, d, "app")
	s.must(t, "create table hooked (at text primary key)")
	before := statefulSets(t, d)

	hooks := func(first string) string {
		return fmt.Sprintf(`{"config":{"max_connections":"160"},"maintenance":{"hooks":{"before":[{"name":"first","timeout":"30s","sql":{"statement":%q}}],
			"after":[{"name":"last","timeout":"30s","sql":{"statement":"insert into hooked values ('after')"}}],
			"onSignal":[{"name":"note","timeout":"30s","sql":{"statement":"insert into hooked values ('signal')"}}]}}}`, first)
	}
	merge(t, d, hooks("select 1/0"))
	within(t, creation, "the hook fails", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonHookFailed, `hook "first"`, "kubectl logs"))
	for name, generation := range statefulSets(t, d) {
		if before[name] != generation {
			t.Errorf("%s is changed although a hook failed", name)
		}
	}
	within(t, creation, "all members are well", running(d))

	merge(t, d, hooks("insert into hooked values ('before')"))
	within(t, 2*creation, "every member is as requested", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonUpdated))
	if got := strings.Fields(s.must(t, "select at from hooked order by at")); len(got) != 2 || got[0] != "after" || got[1] != "before" {
		t.Errorf("want each hook once, got %v", got)
	}

	before = statefulSets(t, d)
	if err := kube.Create(t.Context(), &eventsv1alpha1.Signal{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "note"}, Spec: eventsv1alpha1.SignalSpec{
		ForProvider: eventsv1alpha1.SignalParameters{
			Target: eventsv1alpha1.SignalTarget{Kind: eventsv1alpha1.TargetDatabase, Name: d.Name}, Do: eventsv1alpha1.ActHook, Hook: "note",
			ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour)),
		},
	}}); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "the hook of the Signal has passed", func(ctx context.Context) error {
		now, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if s := now.Status.Signals; len(s) != 1 || s[0].Hook == nil || s[0].Hook.Result != v1alpha1.HookResultPassed {
			return fmt.Errorf("signals are %+v", s)
		}

		return nil
	})
	if got := strings.TrimSpace(s.must(t, "select count(*) from hooked where at = 'signal'")); got != "1" {
		t.Errorf("want the hook to have run once, got %s rows", got)
	}
	for name, generation := range statefulSets(t, d) {
		if before[name] != generation {
			t.Errorf("%s is changed for a Signal", name)
		}
	}
}
