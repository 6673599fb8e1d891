// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// newRecords makes a cache of what the pods that take snapshots write about themselves. Metrics alone are made of it. The cache of
// the members' ConfigMaps holds annotations only, and cannot hold these.
func newRecords(mgr ctrl.Manager) (cache.Cache, error) {
	c, err := seen.New(mgr, seen.Objects{Kind: &corev1.ConfigMap{}, Having: []string{members.LabelSnapshotOf}, Slim: slimRecord})
	if err != nil {
		return nil, err
	}
	if _, err := c.GetInformer(context.Background(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cannot watch records of snapshots: %w", err)
	}
	return c, nil
}

// slimRecord leaves of a record of snapshots whose it is, since when it is there, and what a run writes.
func slimRecord(o any) (any, error) {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return o, nil
	}
	small := &corev1.ConfigMap{ObjectMeta: seen.Meta(m, []string{members.LabelSnapshotOf}, nil), Data: map[string]string{}}
	small.CreationTimestamp = m.CreationTimestamp
	for _, key := range []string{members.KeyRecord, members.KeyFailure} {
		if said, ok := m.Data[key]; ok {
			small.Data[key] = said
		}
	}
	return small, nil
}

// snapshotted is when the last snapshot of a Database began, in seconds since 1970, and whether a run has failed after it; 1 when it is so.
// Before the first it is the time since when snapshots are taken. A ConfigMap with another name is no record.
func snapshotted(m *corev1.ConfigMap) (at, failed float64, ok bool) {
	if m.Name != m.Labels[members.LabelSnapshotOf]+"-snapshots" {
		return 0, 0, false
	}
	// What cannot be understood says nothing.
	var record members.SnapshotRecord
	var failure members.SnapshotFailure
	_ = json.Unmarshal([]byte(m.Data[members.KeyRecord]), &record)
	_ = json.Unmarshal([]byte(m.Data[members.KeyFailure]), &failure)
	since := m.CreationTimestamp.Time
	if began, err := time.Parse(time.RFC3339, record.Last.Began); err == nil {
		since = began
	}
	if failure.Message != "" {
		failed = 1
	}
	return float64(since.Unix()), failed, true
}
