// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
)

// cutWithin is how long a driver may take until the moment of a snapshot has come. What it then does, such as to copy it elsewhere, may take
// hours.
const cutWithin = 10 * time.Minute

// group of VolumeSnapshots, which brings its kinds by itself.
const group = "/apis/snapshot.storage.k8s.io/v1"

// labelIdentity of snapshots: an earlier Database of the same name has another one, and its snapshots stay.
const labelIdentity = "capstan.dev/identity"

// volumes of a member's pod.
const (
	volumeData = "data"
	volumeWAL  = "wal"
)

// A Taker takes snapshots of a Database.
type Taker struct {
	REST rest.Interface
	// Namespace and Name of the Database, and Base, the value of the label of its members.
	Namespace, Name, Base string
	// Identity of the Database, version of its data, and Stanza with its archive.
	Identity, Version, Stanza string
	// Class of the snapshots, and how many to Keep.
	Class string
	Keep  int
	// Poll is the pause between two looks at a snapshot that is being made.
	Poll time.Duration
	Log  *slog.Logger
}

// volumeSnapshot has what is read and written of one.
type volumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Source struct {
			Claim string `json:"persistentVolumeClaimName,omitempty"`
		} `json:"source"`
		Class string `json:"volumeSnapshotClassName,omitempty"`
	} `json:"spec"`
	Status struct {
		CreationTime *metav1.Time `json:"creationTime,omitempty"`
		Ready        bool         `json:"readyToUse,omitempty"`
		RestoreSize  string       `json:"restoreSize,omitempty"`
		Error        struct {
			Message string `json:"message,omitempty"`
		} `json:"error,omitzero"`
	} `json:"status,omitzero"`
}

// Run takes a snapshot, removes those that are not kept, and records how it went.
func (t *Taker) Run(ctx context.Context) (members.SnapshotTaken, error) {
	taken, kept, err := t.take(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	data := map[string]any{members.KeyFailure: nil}
	if err != nil {
		data[members.KeyFailure] = text(members.SnapshotFailure{At: stamp(time.Now()), Message: err.Error()})
	}
	// After a failure the last snapshot is still the last, unless only older ones could not be removed.
	if taken.Ready != "" {
		data[members.KeyRecord] = text(members.SnapshotRecord{Last: taken, Kept: kept})
	}
	return taken, errors.Join(err, t.record(ctx, data))
}

// take a snapshot.
func (t *Taker) take(ctx context.Context) (members.SnapshotTaken, int, error) {
	began := time.Now()
	pod, err := t.choose(ctx)
	if err != nil {
		return members.SnapshotTaken{}, 0, err
	}
	taken := members.SnapshotTaken{Name: t.Name + "-" + began.UTC().Format("20060102-150405"), Member: pod.Labels[members.LabelMember], Began: stamp(began)}
	t.Log.Info("taking a snapshot", "snapshot", taken.Name, "member", taken.Member, "class", t.Class)
	if err := t.make(ctx, pod, &taken); err != nil {
		// What is not complete is of no use, and might never be.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return members.SnapshotTaken{}, 0, errors.Join(err, t.remove(cleanup, taken.Name))
	}
	kept, err := t.expire(ctx)
	return taken, kept, err
}

// choose the pod of a member: a standby, so that the storage of the leader has nothing to do, or else the leader.
func (t *Taker) choose(ctx context.Context) (corev1.Pod, error) {
	list, err := t.pods(ctx)
	if err != nil {
		return corev1.Pod{}, err
	}
	slices.SortFunc(list, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, role := range []string{members.RoleReplica, members.RoleLeader} {
		for _, p := range list {
			if p.Labels[members.LabelMember] == "" || p.Labels[members.LabelRole] != role || p.DeletionTimestamp != nil || ready(p).Status != corev1.ConditionTrue {
				continue
			}
			if claim(p, volumeWAL) != "" {
				return p, fmt.Errorf("member %s has its write-ahead log on another volume, and no snapshot shows both at one moment: remove spec.backup.snapshots, and use backups", p.Labels[members.LabelMember])
			}
			return p, nil
		}
	}
	return corev1.Pod{}, errors.New("no member is ready: see the condition Available of the Database")
}

// pods of the members.
func (t *Taker) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	of := labels.Set{members.LabelDatabase: t.Base}
	if err := t.REST.Get().Namespace(t.Namespace).Resource("pods").Param("labelSelector", of.String()).Do(ctx).Into(&list); err != nil {
		return nil, fmt.Errorf("cannot list the pods of the Database: %w", err)
	}
	return list.Items, nil
}

// ready condition of a pod.
func ready(p corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

// claim of a volume of a pod, or "".
func claim(p corev1.Pod, name string) string {
	for _, v := range p.Spec.Volumes {
		if v.Name == name && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// make a snapshot of the volume of a pod, and wait until it is ready.
func (t *Taker) make(ctx context.Context, pod corev1.Pod, taken *members.SnapshotTaken) error {
	shows := members.Snapshot{Database: t.Name, Identity: t.Identity, Stanza: t.Stanza, Version: t.Version, Member: taken.Member}
	s := volumeSnapshot{TypeMeta: metav1.TypeMeta{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot"}}
	s.Name, s.Labels = taken.Name, map[string]string{members.LabelSnapshotOf: t.Name, labelIdentity: t.Identity}
	s.Annotations = map[string]string{members.AnnotationSnapshot: text(shows)}
	s.Spec.Source.Claim, s.Spec.Class = claim(pod, volumeData), t.Class
	if err := t.REST.Post().AbsPath(t.path("")).Body([]byte(text(s))).SetHeader("Content-Type", "application/json").Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot make VolumeSnapshot %q of claim %q: %w", s.Name, s.Spec.Source.Claim, err)
	}
	cut, err := t.cut(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := t.unmoved(ctx, pod); err != nil {
		return err
	}
	taken.Cut = stamp(cut)
	shows.Cut = taken.Cut
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{members.AnnotationSnapshot: text(shows)}}}
	if err := t.REST.Patch(types.MergePatchType).AbsPath(t.path(s.Name)).Body([]byte(text(patch))).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot note when VolumeSnapshot %q was cut: %w", s.Name, err)
	}
	t.Log.Info("the snapshot is cut", "snapshot", s.Name, "by", taken.Cut)
	made, err := t.await(ctx, s.Name, func(s volumeSnapshot) bool { return s.Status.Ready })
	if err != nil {
		return err
	}
	taken.Ready, taken.Size = stamp(time.Now()), made.Status.RestoreSize
	return nil
}

// cut is a time by which a snapshot shows its volume. The clocks of the storage and of this pod may differ: the later one counts, in whole
// seconds after it.
func (t *Taker) cut(ctx context.Context, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cutWithin, fmt.Errorf("the driver has not cut it within %s", cutWithin))
	defer cancel()
	s, err := t.await(ctx, name, func(s volumeSnapshot) bool { return s.Status.CreationTime != nil })
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	if s.Status.CreationTime.After(at) {
		at = s.Status.CreationTime.Time
	}
	return at.Truncate(time.Second).Add(time.Second), nil
}

// await a state of a snapshot.
func (t *Taker) await(ctx context.Context, name string, holds func(volumeSnapshot) bool) (volumeSnapshot, error) {
	said := ""
	for {
		var s volumeSnapshot
		raw, err := t.REST.Get().AbsPath(t.path(name)).DoRaw(ctx)
		switch {
		case kerrors.IsNotFound(err):
			return s, fmt.Errorf("VolumeSnapshot %q was removed while it was made", name)
		case err == nil:
			if err := json.Unmarshal(raw, &s); err != nil {
				return s, fmt.Errorf("cannot understand VolumeSnapshot %q: %w", name, err)
			}
			if holds(s) {
				return s, nil
			}
			said = s.Status.Error.Message // The driver may try again.
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("VolumeSnapshot %q of class %q is not ready: %w: %s", name, t.Class, context.Cause(ctx),
				cmp.Or(said, "its driver and snapshot controller say nothing; see its events"))
		case <-time.After(t.Poll):
		}
	}
}

// unmoved reports whether the data of a member was whole all the time: one that was not ready in between may have been copied again.
func (t *Taker) unmoved(ctx context.Context, pod corev1.Pod) error {
	list, err := t.pods(ctx)
	if err != nil {
		return err
	}
	before := ready(pod)
	for _, p := range list {
		now := ready(p)
		if p.Name == pod.Name && p.UID == pod.UID && now.Status == corev1.ConditionTrue && now.LastTransitionTime.Equal(&before.LastTransitionTime) {
			return nil
		}
	}
	return fmt.Errorf("member %s was not ready all the time while its volume was cut, so that its data may not be whole", pod.Labels[members.LabelMember])
}

// expire snapshots that are not kept, and those that were not completed, and return how many there are.
func (t *Taker) expire(ctx context.Context) (int, error) {
	var list struct {
		Items []volumeSnapshot `json:"items"`
	}
	of := labels.Set{members.LabelSnapshotOf: t.Name, labelIdentity: t.Identity}
	raw, err := t.REST.Get().AbsPath(t.path("")).Param("labelSelector", of.String()).DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot list snapshots: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b volumeSnapshot) int { return strings.Compare(b.Name, a.Name) }) // the newest first
	kept := 0
	for _, s := range list.Items {
		var shows members.Snapshot
		_ = json.Unmarshal([]byte(s.Annotations[members.AnnotationSnapshot]), &shows)
		if s.DeletionTimestamp != nil {
			continue
		}
		if shows.Cut != "" && s.Status.Ready && kept < t.Keep {
			kept++
			continue
		}
		t.Log.Info("removing a snapshot", "snapshot", s.Name)
		if err := t.remove(ctx, s.Name); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// remove a snapshot, if it exists.
func (t *Taker) remove(ctx context.Context, name string) error {
	err := t.REST.Delete().AbsPath(t.path(name)).Do(ctx).Error()
	if err != nil && !kerrors.IsNotFound(err) {
		return fmt.Errorf("cannot remove VolumeSnapshot %q: %w", name, err)
	}
	return nil
}

// record how it went.
func (t *Taker) record(ctx context.Context, data map[string]any) error {
	name, patch := t.Name+"-snapshots", map[string]any{"data": data}
	if err := t.REST.Patch(types.MergePatchType).Namespace(t.Namespace).Resource("configmaps").Name(name).Body([]byte(text(patch))).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot write ConfigMap %q: %w", name, err)
	}
	return nil
}

// path of a snapshot, or of all with "".
func (t *Taker) path(name string) string {
	p := group + "/namespaces/" + url.PathEscape(t.Namespace) + "/volumesnapshots"
	if name != "" {
		p += "/" + url.PathEscape(name)
	}
	return p
}

// text of a value as JSON. All of them can be written so.
func text(v any) string {
	raw, _ := json.Marshal(v) //nolint:errchkjson // Only plain values.
	return string(raw)
}

// stamp of a time.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
