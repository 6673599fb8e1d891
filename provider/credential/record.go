// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// An identity is 16 random bytes.
var identity = regexp.MustCompile(`^[0-9a-f]{32}$`)

// A record is what a Secret remembers about its values, in its annotations.
type record struct {
	identity   string
	rotatedAt  time.Time
	rotationID string

	// generation counts the values where two usernames take turns, and is 0 where they do not. Staged names the next
	// ones, if there are any, and stagedID is the rotation id that they were made for.
	generation       int64
	staged, stagedID string

	// overlapUntil is when the username before ends, if it is still good.
	overlapUntil time.Time

	// generated keys, which nothing may take away.
	generated sets.Set[string]

	// rendered keys, which can be made again from the generated ones.
	rendered sets.Set[string]

	// remembered is what the maker of the Credential has it remember.
	remembered string
}

// recall the record of s. What was never recorded, or what became illegible, is empty.
func recall(s *corev1.Secret) record {
	a := s.GetAnnotations()
	r := record{
		rotationID: a[v1alpha1.AnnotationRotationID],
		staged:     a[v1alpha1.AnnotationStaged],
		stagedID:   a[v1alpha1.AnnotationStagedRotationID],
		generated:  list(a[v1alpha1.AnnotationGenerated]),
		rendered:   list(a[v1alpha1.AnnotationRendered]),
		remembered: a[v1alpha1.AnnotationRemembered],
	}
	if id := a[v1alpha1.AnnotationIdentity]; identity.MatchString(id) {
		r.identity = id
	}
	if n, err := strconv.ParseInt(a[v1alpha1.AnnotationGeneration], 10, 64); err == nil && n > 0 {
		r.generation = n
	}
	r.rotatedAt = instant(a[v1alpha1.AnnotationRotatedAt])
	r.overlapUntil = instant(a[v1alpha1.AnnotationOverlapUntil])
	return r
}

// instant in an annotation, or none.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// list of keys in an annotation.
func list(text string) sets.Set[string] {
	return sets.New(slices.DeleteFunc(strings.Split(text, ","), func(k string) bool { return k == "" })...)
}

// keep the record with s.
func (r record) keep(s *corev1.Secret) {
	set(&s.Annotations, v1alpha1.AnnotationIdentity, r.identity)
	set(&s.Annotations, v1alpha1.AnnotationRemembered, r.remembered)
	set(&s.Annotations, v1alpha1.AnnotationRotatedAt, r.rotatedAt.Format(time.RFC3339))
	set(&s.Annotations, v1alpha1.AnnotationRotationID, r.rotationID)
	set(&s.Annotations, v1alpha1.AnnotationStaged, r.staged)
	set(&s.Annotations, v1alpha1.AnnotationStagedRotationID, r.stagedID)
	generation, overlap := "", ""
	if r.generation > 0 {
		generation = strconv.FormatInt(r.generation, 10)
	}
	if !r.overlapUntil.IsZero() {
		overlap = r.overlapUntil.Format(time.RFC3339)
	}
	set(&s.Annotations, v1alpha1.AnnotationGeneration, generation)
	set(&s.Annotations, v1alpha1.AnnotationOverlapUntil, overlap)
	set(&s.Annotations, v1alpha1.AnnotationGenerated, strings.Join(sets.List(r.generated), ","))
	set(&s.Annotations, v1alpha1.AnnotationRendered, strings.Join(sets.List(r.rendered), ","))
}

// set a label or an annotation, or none when it would be empty.
func set(m *map[string]string, key, value string) {
	if value == "" {
		delete(*m, key)
		return
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// newIdentity never fails: the process ends when there are no random bytes.
func newIdentity() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}
