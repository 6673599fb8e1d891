// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What members of a Database are labelled with (package apis/members, which belongs to another module).
const (
	labelMember   = "capstan.dev/member"
	labelDatabase = "capstan.dev/database"
	labelScope    = "cluster-name"
	labelRole     = "capstan.dev/role"
)

// Reports of healthy members of PostgreSQL that have nothing to do: nothing is written, so no member is behind. Patroni writes the first two.
const (
	leads       = `{"state":"running","role":"primary","version":"4.1.5","xlog_location":50331648,"timeline":1}`
	follows     = `{"state":"running","role":"replica","version":"4.1.5","xlog_location":50331648,"replication_state":"streaming","timeline":1}`
	memberSays  = `{"version":"17.6","disk":"Ok"}`
	position    = "50331648"
	renewsEvery = 10 * time.Second // Patroni's loop
)

// zones of the nodes. Each has one member of a Database.
func zones() []string { return []string{"a", "b", "c"} }

// nodes that pods are on. They have no kubelet, and no controller takes pods away from them.
func (s *standIn) nodes(ctx context.Context) error {
	for _, zone := range zones() {
		n := object("v1", "Node", name{"", "node-" + zone}, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": "node-" + zone}},
		})
		if err := s.apply(ctx, nodes, n); err != nil {
			return err
		}
		// Admission gives a new node a taint.
		if err := s.apply(ctx, nodes, object("v1", "Node", name{"", n.GetName()}, map[string]any{
			"metadata": n.Object["metadata"], "spec": map[string]any{"taints": []any{}},
		})); err != nil {
			return err
		}
		ready := map[string]any{"type": "Ready", "status": string(metav1.ConditionTrue), "reason": "KubeletReady", "message": "simulated"}
		if err := s.report(ctx, nodes, n, map[string]any{"conditions": []any{ready}}); err != nil {
			return err
		}
	}
	return nil
}

// member of a Database, whose StatefulSet this is: its volume, its pod and what it reports, and then the status of the StatefulSet.
func (s *standIn) member(ctx context.Context, set *unstructured.Unstructured) error {
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	if set.GetDeletionTimestamp() != nil || set.GetLabels()[labelMember] == "" || observed == set.GetGeneration() {
		return nil
	}
	m, err := newMember(set)
	if err != nil {
		return err
	}
	for _, c := range m.claims {
		if err := s.claim(ctx, m, c); err != nil {
			return err
		}
	}
	if err := s.apply(ctx, pods, m.pod()); err != nil {
		return err
	}
	if err := s.report(ctx, pods, m.pod(), m.running()); err != nil {
		return err
	}
	if m.leads {
		if err := s.lead(ctx, m); err != nil {
			return err
		}
	}
	return s.report(ctx, sets, set, map[string]any{
		"observedGeneration": set.GetGeneration(), "replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
		"updatedReplicas": int64(1), "currentReplicas": int64(1), "currentRevision": m.revision, "updateRevision": m.revision,
	})
}

// A member that is simulated.
type member struct {
	set            *unstructured.Unstructured
	template       map[string]any
	claims         []map[string]any
	labels         map[string]string
	revision, zone string
	leads          bool
}

// newMember of a StatefulSet. The first of a Database is the leader.
func newMember(set *unstructured.Unstructured) (*member, error) {
	template, found, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("cannot read the template of StatefulSet %q: %w", set.GetName(), err)
	}
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the template of StatefulSet %q: %w", set.GetName(), err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(raw)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	letter := set.GetName()[strings.LastIndex(set.GetName(), "-")+1:]
	m := &member{
		set: set, template: template, labels: labels, leads: letter == "a",
		revision: fmt.Sprintf("%s-%08x", set.GetName(), hash.Sum32()), zone: zones()[int(letter[0]-'a')%len(zones())],
	}
	all, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok {
			m.claims = append(m.claims, c)
		}
	}
	return m, nil
}

// name of the member's pod.
func (m *member) name() name { return name{m.set.GetNamespace(), m.set.GetName() + "-0"} }

// scope is the name that members of the Database find each other by.
func (m *member) scope() string { return m.labels[labelScope] }

// pod on a node, with what the member writes on it.
func (m *member) pod() *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(m.template, "spec")
	spec = runtime.DeepCopyJSON(spec)
	spec["nodeName"], spec["hostname"] = "node-"+m.zone, m.name().name
	volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
	for _, c := range m.claims {
		of, _, _ := unstructured.NestedString(c, "metadata", "name")
		volumes = append(volumes, map[string]any{"name": of, "persistentVolumeClaim": map[string]any{"claimName": of + "-" + m.name().name}})
	}
	spec["volumes"] = volumes
	labels := maps.Clone(m.labels)
	labels["controller-revision-hash"], labels[labelRole] = m.revision, "replica"
	annotations, _, _ := unstructured.NestedStringMap(m.template, "metadata", "annotations")
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["status"], annotations["capstan.dev/member-report"] = follows, memberSays
	if m.leads {
		labels[labelRole], annotations["status"] = "leader", leads
	}
	p := object("v1", "Pod", m.name(), map[string]any{"spec": spec})
	p.SetLabels(labels)
	p.SetAnnotations(annotations)
	p.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m.set, m.set.GroupVersionKind())})
	return p
}

// running is the status of the pod: its containers run, and it is ready.
func (m *member) running() map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	conditions := make([]any, 0, 4)
	for _, c := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, map[string]any{"type": c, "status": string(metav1.ConditionTrue), "lastTransitionTime": now})
	}
	status := map[string]any{"phase": "Running", "startTime": now, "conditions": conditions}
	for from, to := range map[string]string{"containers": "containerStatuses", "initContainers": "initContainerStatuses"} {
		containers, _, _ := unstructured.NestedSlice(m.template, "spec", from)
		told := make([]any, 0, len(containers))
		for _, c := range containers {
			c, _ := c.(map[string]any)
			state := map[string]any{"running": map[string]any{"startedAt": now}}
			if from == "initContainers" && c["restartPolicy"] != "Always" {
				state = map[string]any{"terminated": map[string]any{"exitCode": int64(0), "reason": "Completed", "startedAt": now, "finishedAt": now}}
			}
			told = append(told, map[string]any{
				"name": c["name"], "image": c["image"], "imageID": c["image"], "ready": true, "started": true, "restartCount": int64(0), "state": state,
			})
		}
		status[to] = told
	}
	return status
}

// claim of a volume, which is there at once.
func (s *standIn) claim(ctx context.Context, m *member, template map[string]any) error {
	of, _, _ := unstructured.NestedString(template, "metadata", "name")
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	spec, _, _ := unstructured.NestedMap(template, "spec")
	size, _, _ := unstructured.NestedString(spec, "resources", "requests", "storage")
	c := object("v1", "PersistentVolumeClaim", name{m.set.GetNamespace(), of + "-" + m.name().name}, map[string]any{"spec": spec})
	c.SetLabels(labels)
	if err := s.apply(ctx, claims, c); err != nil {
		return err
	}
	return s.report(ctx, claims, c, map[string]any{"phase": "Bound", "capacity": map[string]any{"storage": size}})
}

// lead the others: what a leader of Patroni keeps in ConfigMaps.
func (s *standIn) lead(ctx context.Context, m *member) error {
	pod := m.name().name
	other := strings.TrimSuffix(m.set.GetName(), "a") + "b-0"
	for suffix, annotations := range map[string]map[string]any{
		"config": {"initialize": "7575"},
		"sync":   {"leader": pod, "sync_standby": other},
		"leader": {
			"leader": pod, "acquireTime": time.Now().UTC().Format(time.RFC3339), "ttl": "30", "renewTime": time.Now().UTC().Format(time.RFC3339),
			"transitions": "0", "optime": position,
		},
	} {
		c := object("v1", "ConfigMap", name{m.set.GetNamespace(), m.scope() + "-" + suffix}, map[string]any{
			"metadata": map[string]any{
				"annotations": annotations, "labels": map[string]any{labelDatabase: m.labels[labelDatabase], labelScope: m.scope()},
			},
		})
		if err := s.apply(ctx, configs, c); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks[name{m.set.GetNamespace(), m.scope() + "-leader"}] = true
	return nil
}

// renewAll locks of leaders, each once in a loop of Patroni.
func (s *standIn) renewAll(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		all := slices.Collect(maps.Keys(s.locks))
		s.mu.Unlock()
		begin := time.Now()
		if len(all) > 0 {
			_ = paced(ctx, len(all), float64(len(all))/renewsEvery.Seconds(), func(ctx context.Context, i int) error {
				s.renew(ctx, all[i])
				return nil
			})
		}
		_ = sleep(ctx, max(time.Second, renewsEvery-time.Since(begin)))
	}
}

// renew the lock of a leader. One that is gone is of a Database that is deleted; any other failure ends with the next loop.
func (s *standIn) renew(ctx context.Context, n name) {
	if err := s.annotate(ctx, configs, n, map[string]any{"renewTime": time.Now().UTC().Format(time.RFC3339Nano)}); apierrors.IsNotFound(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locks, n)
	}
}

// end a pod that is deleted, as its kubelet would.
func (s *standIn) end(ctx context.Context, pod *unstructured.Unstructured) error {
	if pod.GetDeletionTimestamp() == nil {
		return nil
	}
	if err := s.client.Resource(pods).Namespace(pod.GetNamespace()).Delete(ctx, pod.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return fmt.Errorf("cannot end pod %q: %w", pod.GetName(), err)
	}
	return nil
}
