// SPDX-License-Identifier: Apache-2.0

package signal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func signal(name, target string, created, expires time.Duration) *v1alpha1.Signal {
	return &v1alpha1.Signal{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(created))},
		Spec: v1alpha1.SignalSpec{ForProvider: v1alpha1.SignalParameters{
			Target: v1alpha1.SignalTarget{Kind: v1alpha1.TargetAlgorithm, Name: target}, Do: v1alpha1.ActHold,
			ExpiresAt: metav1.NewTime(now.Add(expires)), Source: "test",
		}},
	}
}

func clientWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

// TestLife of a Signal: in force, ended, deleted.
func TestLife(t *testing.T) {
	cases := map[string]struct {
		reason  string
		expires time.Duration
		created time.Duration
		want    xpv2.ConditionReason
		deleted bool
		poll    time.Duration
	}{
		"InForce":  {"until its end", time.Minute, 0, xpv2.ReasonAvailable, false, time.Minute},
		"Ended":    {"it stays for an hour", -time.Minute, -time.Hour, ReasonEnded, false, 59 * time.Minute},
		"Deleted":  {"and goes", -time.Hour, -2 * time.Hour, ReasonEnded, true, time.Second},
		"TypoYear": {"a week is the longest", 1000 * time.Hour, -7*24*time.Hour + time.Minute, xpv2.ReasonAvailable, false, time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := signal("a", "reco", tc.created, tc.expires)
			kube := clientWith(t, cr.DeepCopy())
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
				t.Fatal(err)
			}
			board, woken := &signals.Board{}, 0
			board.OnChange(func(signals.Target) { woken++ })
			w := &watcher{kube: kube, board: board, now: func() time.Time { return now }}
			for range 2 {
				if _, err := w.Observe(t.Context(), cr); err != nil {
					t.Fatal(err)
				}
			}
			if got := cr.GetCondition(xpv2.TypeReady).Reason; got != tc.want {
				t.Errorf("%s: reason %s, want %s", tc.reason, got, tc.want)
			}
			if got := w.poll(cr, time.Hour); got != tc.poll {
				t.Errorf("%s: looked at again after %s, want %s", tc.reason, got, tc.poll)
			}
			if woken != 1 {
				t.Errorf("%s: observers were woken %d times, want once", tc.reason, woken)
			}
			err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), &v1alpha1.Signal{})
			if kerrors.IsNotFound(err) != tc.deleted {
				t.Errorf("%s: deleted is %v, want %v", tc.reason, kerrors.IsNotFound(err), tc.deleted)
			}
		})
	}
}

// TestExtendedMeanwhile: a Signal that was extended since it was read is not deleted.
func TestExtendedMeanwhile(t *testing.T) {
	read := signal("a", "reco", -2*time.Hour, -time.Hour)
	kube := clientWith(t, read.DeepCopy())
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(read), read); err != nil {
		t.Fatal(err)
	}
	extended := read.DeepCopy()
	extended.Spec.ForProvider.ExpiresAt = metav1.NewTime(now.Add(time.Hour))
	if err := kube.Update(t.Context(), extended); err != nil {
		t.Fatal(err)
	}
	w := &watcher{kube: kube, board: &signals.Board{}, now: func() time.Time { return now }}
	if _, err := w.Observe(t.Context(), read); err == nil {
		t.Error("want an error, so that it is looked at again")
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(read), &v1alpha1.Signal{}); err != nil {
		t.Errorf("want the Signal kept: %v", err)
	}
}

// TestBoard shows which Signals observers see.
func TestBoard(t *testing.T) {
	target := signals.Target{Kind: v1alpha1.TargetAlgorithm, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "reco"}}
	was := []observev1alpha1.ActiveSignal{
		{Name: "kept", Until: metav1.NewTime(now.Add(time.Second))}, {Name: "over", Until: metav1.NewTime(now)},
	}
	names := func(b *signals.Board) []string {
		t.Helper()
		active, err := b.Active(t.Context(), target, was, now)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]string, 0, len(active))
		for _, a := range active {
			all = append(all, a.Name)
		}
		return all
	}
	b := &signals.Board{}
	if diff := cmp.Diff([]string{"kept"}, names(b)); diff != "" {
		t.Errorf("while Signals are unknown, what holds holds: -want, +got:\n%s", diff)
	}
	objects := []client.Object{
		signal("b", "reco", 0, time.Minute), signal("a", "reco", 0, time.Minute), signal("other", "else", 0, time.Minute), signal("ended", "reco", -time.Hour, 0),
	}
	b.Open(clientWith(t, objects...))
	if diff := cmp.Diff([]string{"a", "b"}, names(b)); diff != "" {
		t.Errorf("those that are in force: -want, +got:\n%s", diff)
	}
	for i := range 2 * observev1alpha1.MaxSignals {
		objects = append(objects, signal("flood-"+string(rune('a'+i)), "reco", time.Second, time.Minute))
	}
	b.Open(clientWith(t, objects...))
	if got := names(b); len(got) != observev1alpha1.MaxSignals || got[0] != "a" || got[1] != "b" {
		t.Errorf("a flood displaces none that is older, got %v", got)
	}
	tasks := []client.Object{signal("hold", "reco", time.Second, time.Minute)}
	for i := range observev1alpha1.MaxSignals {
		task := signal("task-"+string(rune('a'+i)), "reco", 0, time.Minute)
		task.Spec.ForProvider.Do, task.Spec.ForProvider.Hook = v1alpha1.ActHook, "flush"
		tasks = append(tasks, task)
	}
	b.Open(clientWith(t, tasks...))
	if got := names(b); len(got) != observev1alpha1.MaxSignals || got[0] != "hold" {
		t.Errorf("tasks do not keep one from holding, got %v", got)
	}
}
