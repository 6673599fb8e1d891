// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// report of a member about itself, bounded: a program that may label a pod could write it.
func report(p *corev1.Pod) v1alpha1.MemberReport {
	r := v1alpha1.MemberReport{}
	if err := json.Unmarshal([]byte(p.GetAnnotations()[v1alpha1.AnnotationMember]), &r); err != nil {
		return v1alpha1.MemberReport{}
	}
	for _, field := range []*string{&r.Version, &r.Disk, &r.WALDisk, &r.Reason} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	boundVolume(&r.Volume)
	boundVolume(&r.WALVolume)
	r.Message = words.Bounded(words.OneLine(r.Message), maxMessage)
	r.Reinitialize.ID = words.Bounded(words.OneLine(r.Reinitialize.ID), maxReason)
	r.Reinitialize.Outcome = words.Bounded(words.OneLine(r.Reinitialize.Outcome), maxReason)
	r.Reinitialize.Message = words.Bounded(words.OneLine(r.Reinitialize.Message), maxMessage)
	r.Fence.ID = words.Bounded(words.OneLine(r.Fence.ID), maxReason)
	r.Fence.Outcome = words.Bounded(words.OneLine(r.Fence.Outcome), maxReason)
	r.Fence.Message = words.Bounded(words.OneLine(r.Fence.Message), maxMessage)
	bound(&r.Backup)
	boundFollowing(&r.Following)
	boundImport(r.Import)
	boundQueries(r.Queries)
	r.RestorePoints = boundPoints(r.RestorePoints)
	return r
}

// boundVolume bounds what a member reports of a volume.
func boundVolume(v *v1alpha1.VolumeReport) {
	for _, field := range []*string{&v.FileSystem, &v.Fill, &v.Slot, &v.Diverged} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	v.UsedPercent = min(max(v.UsedPercent, 0), 100)
}

// maxQueries that a member reports of.
const maxQueries = 16

// boundQueries bounds what a member reports of queries.
func boundQueries(r *v1alpha1.QueriesReport) {
	if r == nil {
		return
	}
	r.Failing = r.Failing[:min(len(r.Failing), maxQueries)]
	for i := range r.Failing {
		q := &r.Failing[i]
		q.Name, q.Message = words.Bounded(words.OneLine(q.Name), maxReason), words.Bounded(words.OneLine(q.Message), maxMessage)
	}
}

// bound what a member reports of backups: a program that may annotate a pod could write it.
func bound(b *v1alpha1.BackupReport) {
	for _, field := range []*string{&b.Archive, &b.Key, &b.Label, &b.Type} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	for _, field := range []*string{&b.Message, &b.Unread} {
		*field = words.Bounded(words.OneLine(*field), maxMessage)
	}
	for _, at := range []*string{&b.Since, &b.Dropped, &b.Began, &b.Ended, &b.Earliest} {
		if _, err := time.Parse(time.RFC3339, *at); err != nil {
			*at = ""
		}
	}
	b.Size, b.Added = max(b.Size, 0), max(b.Added, 0)
	b.Repository.UsedPercent = min(max(b.Repository.UsedPercent, 0), 100)
	b.Repository.Disk = words.Bounded(words.OneLine(b.Repository.Disk), maxReason)
	b.Repository.FileSystem = words.Bounded(words.OneLine(b.Repository.FileSystem), maxReason)
	b.RestorePointWait = words.Bounded(words.OneLine(b.RestorePointWait), maxMessage)
	boundVerification(&b.Verification)
}

// boundFollowing bounds what a leader reports of the archive that it follows.
func boundFollowing(f *v1alpha1.FollowReport) {
	f.State, f.Stanza = words.Bounded(words.OneLine(f.State), maxReason), words.Bounded(words.OneLine(f.Stanza), maxReason)
	f.Message = words.Bounded(words.OneLine(f.Message), maxMessage)
	if _, err := time.Parse(time.RFC3339, f.ReplayedTo); err != nil {
		f.ReplayedTo = ""
	}
}

// boundVerification bounds the results of verifications.
func boundVerification(v *v1alpha1.VerificationReport) {
	for _, field := range []*string{&v.ID, &v.Backup, &v.Failure, &v.Passed.Backup} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	v.Message = words.Bounded(words.OneLine(v.Message), maxMessage)
	for _, at := range []*string{&v.Began, &v.Ended, &v.Passed.At, &v.Passed.ReplayedTo} {
		if _, err := time.Parse(time.RFC3339, *at); err != nil {
			*at = ""
		}
	}
	v.Passed.Seconds, v.Passed.Assertions = max(v.Passed.Seconds, 0), max(v.Passed.Assertions, 0)
}

// maxPoints is how many restore points are reported.
const maxPoints = 17

// boundPoints bounds restore points. There is one of each name.
func boundPoints(points []v1alpha1.RestorePoint) []v1alpha1.RestorePoint {
	var known []v1alpha1.RestorePoint
	for _, p := range points[max(0, len(points)-maxPoints):] {
		for _, field := range []*string{&p.Name, &p.Label, &p.At, &p.LSN} {
			*field = words.Bounded(words.OneLine(*field), maxReason)
		}
		if !slices.ContainsFunc(known, func(k v1alpha1.RestorePoint) bool { return k.Name == p.Name }) {
			known = append(known, p)
		}
	}
	return known
}
