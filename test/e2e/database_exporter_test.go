// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseExporter: the exporter of the leader ends again and again, until its container waits for a restart and the pod is not ready.
// Clients do not notice.
func TestDatabaseExporter(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability = 1, nil
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "writer"}}
	})
	createDatabase(t, d)
	lead := leader(t, d)
	w := write(t, d, lead.Spec.NodeName, byService, 0)
	stop := served(t, d)
	since := time.Now()
	for range 4 {
		within(t, creation, "the exporter runs", func(ctx context.Context) error {
			p, err := get(ctx, &corev1.Pod{}, lead.Namespace, lead.Name)
			if err != nil {
				return err
			}
			if s := exporter(p); s.State.Running == nil {
				return fmt.Errorf("it has been started %d times again, and is %+v", s.RestartCount, s.State)
			}
			return nil
		})
		// The connection ends with the container.
		_, _ = execIn(t.Context(), &lead, "exporter", "", "sh", "-c", "kill -TERM 1")
		time.Sleep(2 * time.Second)
	}
	within(t, timeout, "the pod is not ready", func(ctx context.Context) error {
		p, err := get(ctx, &corev1.Pod{}, lead.Namespace, lead.Name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			return errors.New("it is ready")
		}
		return nil
	})
	time.Sleep(10 * time.Second)
	stop()
	if gaps := w.gapsSince(t.Context(), since); len(gaps) > 0 {
		t.Errorf("writes paused: %+v", gaps)
	}
	a := w.end(t)
	t.Logf("%d rows acknowledged, %d failed, %d lost, longest gap %.1f s", a.Acknowledged, a.Failed, len(a.Lost), a.Longest)
	if a.Failed > 0 || len(a.Lost) > 0 {
		t.Errorf("%d writes failed: %v; lost: %v", a.Failed, a.Errors, a.Lost)
	}
}

// exporter of a member: the state of its container.
func exporter(p *corev1.Pod) corev1.ContainerStatus {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "exporter" })
	if i < 0 {
		return corev1.ContainerStatus{}
	}
	return p.Status.ContainerStatuses[i]
}

// served watches the Service of the leader: there is always somewhere to connect to.
func served(t *testing.T, d *v1alpha1.Database) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			endpoints := &discoveryv1.EndpointSliceList{}
			if err := kube.List(ctx, endpoints, client.InNamespace(d.Namespace),
				client.MatchingLabels{discoveryv1.LabelServiceName: d.Name + "-rw"}); err != nil {
				continue
			}
			ready := 0
			for _, s := range endpoints.Items {
				for _, e := range s.Endpoints {
					if e.Conditions.Ready == nil || *e.Conditions.Ready {
						ready++
					}
				}
			}
			if ready != 1 {
				t.Errorf("%s: the Service has %d endpoints", time.Now().Format(time.TimeOnly), ready)
			}
		}
	})

	return func() { cancel(); done.Wait() }
}
