// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// target that Signals to the Database of a Topology have. Every generation of a Database has a Topology.
func target(cr *v1alpha1.Topology) signals.Target {
	name, _, _ := strings.Cut(cr.Spec.ForProvider.Database, ".")
	return signals.Target{
		Kind:           eventsv1alpha1.TargetDatabase,
		NamespacedName: types.NamespacedName{Namespace: cr.GetNamespace(), Name: name},
	}
}

// signalled wakes the Topologies of a Database that a Signal is for.
func (w *watcher) signalled(ctx context.Context, t signals.Target, q queue) {
	if t.Kind != eventsv1alpha1.TargetDatabase {
		return
	}
	l := &v1alpha1.TopologyList{}
	if err := w.kube.List(ctx, l, client.InNamespace(t.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		w.log.Info("Cannot list Topologies that a Signal is for, they will see it at their next poll", "error", err)
		return
	}
	for i := range l.Items {
		if target(&l.Items[i]) == t {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
}
