// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// window around the start of a Create in which its bucket was made. A Create takes a minute at most; the rest is for clocks,
// which may differ as much as signed requests allow.
const window = 15 * time.Minute

// A standing of a Bucket towards the bucket of its name.
type standing string

const (
	// ours: we may change and delete it.
	ours standing = "Ours"

	// unmarked: it is ours once it carries our tag.
	unmarked standing = "Unmarked"

	// others: its tag names another owner.
	others standing = "Others"

	// nobodys: it carries no tag, and we have no right to it.
	nobodys standing = "Nobodys"
)

// evidence of who owns a bucket.
type evidence struct {
	// owner that the tag names, "" when there is none.
	owner string

	// taggable reports whether the server has tags.
	taggable bool

	// recorded means that this Bucket knows that it made or adopted the bucket.
	recorded bool

	// began is when a Create began whose end is unknown, or zero.
	began time.Time

	// made is when the bucket was made, zero when unknown; empty means that nothing is in it. Both are read only when a Create
	// began.
	made  time.Time
	empty bool

	// consent to take over a bucket without owner, of the Bucket and its config.
	consent bool

	// shared means that other tenants use the server with the same credentials.
	shared bool
}

// judge who owns a bucket, for a Bucket whose tag is own.
func judge(own string, e evidence) standing {
	switch {
	case e.owner == own && e.taggable:
		return ours
	case e.owner != "" && e.taggable:
		return others
	case e.recorded && !e.taggable:
		return ours
	case e.interrupted() || e.consent:
		if !e.taggable {
			return ours
		}
		return unmarked
	default:
		return nobodys
	}
}

// interrupted reports whether the bucket is surely the one that a Create of ours has made without setting its tag. On a shared
// server without tags another owner's bucket looks the same, so the time must be known.
func (e evidence) interrupted() bool {
	if e.began.IsZero() || !e.empty {
		return false
	}
	if e.made.IsZero() {
		return !e.shared || e.taggable
	}
	return e.made.Sub(e.began).Abs() <= window
}

// began is when a Create of cr began whose end is unknown: the process died, or no answer came, or the tag could not be set.
// Where there are no tags and others share the ground, the annotations, which anybody can write, are no more than such a hint
// until the status confirms them.
func began(cr *v1alpha1.Bucket, name string, taggable, shared bool) time.Time {
	pending, succeeded := meta.GetExternalCreatePending(cr), meta.GetExternalCreateSucceeded(cr)
	switch {
	case meta.ExternalCreateIncomplete(cr):
		return pending
	case succeeded.Before(pending) && cr.GetAnnotations()[v1alpha1.AnnotationCreating] == name:
		return pending
	case shared && !taggable && !succeeded.IsZero():
		return succeeded
	default:
		return time.Time{}
	}
}

// recorded reports whether cr knows that it made or adopted its bucket.
func recorded(cr *v1alpha1.Bucket, shared bool) bool {
	return cr.Status.AtProvider.Owned || !shared && !meta.GetExternalCreateSucceeded(cr).IsZero()
}

// taken is the failure of a Bucket whose bucket has another owner, or none.
func taken(cr *v1alpha1.Bucket, name string, s standing, owner string, t outside.Tenant) *outside.Failure {
	f := &outside.Failure{Reason: capstan.ReasonNameTaken}
	switch {
	case s == others && t.Owns(owner):
		f.Message = fmt.Sprintf("bucket %q belongs to Bucket %q of this namespace", name, owner[len(t.Owner("")):])
		f.Remedy = "name another bucket in the annotation crossplane.io/external-name, or use that Bucket"
	case s == others:
		f.Message = fmt.Sprintf("bucket %q belongs to a Bucket of another namespace or cluster", name)
		f.Remedy = fmt.Sprintf("choose another name; if it is not used any more, set its tag %s to %q", v1alpha1.TagOwner, t.Owner(cr.GetName()))
	case !t.Adoption:
		f.Message = fmt.Sprintf("bucket %q exists and carries no tag of an owner", name)
		f.Remedy = fmt.Sprintf("choose another name; %s does not allow to take over buckets", t.Config)
	default:
		f.Message = fmt.Sprintf("bucket %q exists and carries no tag of an owner", name)
		f.Remedy = "choose another name, or set spec.forProvider.adopt to true to take it over"
	}
	return f
}
