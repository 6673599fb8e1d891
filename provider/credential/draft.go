// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A draft is a Secret on its way to what its Credential asks for. Observe makes one and throws it away, to see whether there is
// anything to do; Create and Update write it, in one request.
type draft struct {
	*corev1.Secret
	record

	cr  *v1alpha1.Credential
	now time.Time

	// fresh is true of a Secret that is yet to be made.
	fresh bool

	// ca are the certificates that could be read, noCA is why they could not.
	ca   []byte
	noCA error

	memory *memory

	// wanted are the rendered keys that something asks for.
	wanted sets.Set[string]

	// missing is true when a key that something asks for could not be made.
	missing bool

	// problems that a person has to solve. The rest of the draft is good.
	problems []error

	// `awaits` is what others have not made yet.
	awaits error
}

// steps of a draft, in order. The first that fails ends it: nothing is written.
var steps = []func(*draft) error{
	(*draft).takeOver,
	(*draft).lost,
	(*draft).generate,
	(*draft).rotate,
	(*draft).previous,
	(*draft).overlap,
	(*draft).derive,
	(*draft).connect,
	(*draft).leftovers,
}

// draft what cr asks its Secret s to be. Nothing that s points to is changed.
func (e *external) draft(ctx context.Context, cr *v1alpha1.Credential, s *corev1.Secret, fresh bool) (*draft, error) {
	d := &draft{
		Secret: s.DeepCopy(),
		record: recall(s),
		cr:     cr,
		now:    e.now(),
		fresh:  fresh,
		memory: e.memory,
		wanted: sets.New[string](),
	}
	d.ca, d.noCA = e.authorities(ctx, cr)
	for _, do := range steps {
		if err := do(d); err != nil {
			return nil, err
		}
	}
	d.keep(d.Secret)
	return d, nil
}

// changes reports whether the draft differs from s.
func (d *draft) changes(s *corev1.Secret) bool {
	return !equality.Semantic.DeepEqual(d.Data, s.Data) ||
		!equality.Semantic.DeepEqual(d.Labels, s.Labels) ||
		!equality.Semantic.DeepEqual(d.Annotations, s.Annotations)
}

// completes reports whether the draft has a key that s lacks. Previous values and those to come do not count: no client waits for
// them.
func (d *draft) completes(s *corev1.Secret) bool {
	for k := range d.Data {
		if len(s.Data[k]) == 0 && !isPrevious(k) && !isNext(k) {
			return true
		}
	}
	return false
}

func isPrevious(key string) bool { return strings.HasSuffix(key, v1alpha1.SuffixPrevious) }

// problem is all that a person has to solve, if there is anything.
func (d *draft) problem() error {
	var all error
	for _, p := range d.problems {
		if all == nil {
			all = p
		} else {
			all = fmt.Errorf("%w; %w", all, p)
		}
	}
	return all
}

// takeOver completes the record. A Secret without one is older than the record, or a person has labelled it ours: it is never
// rotated for an id or an age that it had before, so the record begins with the present ones.
func (d *draft) takeOver() error {
	set(&d.Labels, labelManagedBy, managedBy)

	// What opens a Database is guarded by this label (see package/platform.yaml). It stays when the Credential loses it: only a
	// release of the Secret takes it off.
	if database := d.cr.GetLabels()[observev1alpha1.LabelDatabase]; database != "" {
		set(&d.Labels, observev1alpha1.LabelDatabase, database)
	}
	// With this one the Secret may be deleted with its Preview.
	if preview := d.cr.GetLabels()[apisv1alpha1.LabelPreview]; preview != "" {
		set(&d.Labels, apisv1alpha1.LabelPreview, preview)
	}
	if d.Data == nil {
		d.Data = map[string][]byte{}
	}
	if d.identity == "" {
		d.identity = d.cr.Status.AtProvider.Identity
	}
	if !identity.MatchString(d.identity) {
		d.identity = newIdentity()
	}
	d.remembered = cmp.Or(d.cr.Spec.ForProvider.Remember, d.remembered, d.cr.Status.AtProvider.Remembered)
	d.count()
	if d.rotatedAt.IsZero() {
		d.rotatedAt = d.now.UTC().Truncate(time.Second)
		if r := d.cr.Spec.ForProvider.Rotation; r != nil {
			d.rotationID = r.ID
		}
	}

	// The one key that there was before the record.
	if old := v1alpha1.KeyPassword; len(d.generated) == 0 && !d.fresh && (has(d.cr, old) || len(d.Data[old]) > 0) {
		d.generated.Insert(old)
	}
	return nil
}

// lost values are reported and not made again: what they open (a database, say) still expects them. New ones would look
// healthy here and break every login, so a person decides. Until then nothing at all is written.
func (d *draft) lost() error {
	for _, k := range keys(d.cr) {
		if d.generated.Has(k.Name) && len(d.Data[k.Name]) == 0 {
			return errLost(d.Secret, k.Name)
		}
	}
	return nil
}

// generate the values of keys that are new. A value that a person has put there before is taken as it is.
func (d *draft) generate() error {
	for _, k := range keys(d.cr) {
		if d.generated.Has(k.Name) {
			continue
		}
		if len(d.Data[k.Name]) == 0 || d.rendered.Has(k.Name) {
			v, err := generate(d.cr.Spec.ForProvider, k)
			if err != nil {
				return err
			}
			d.Data[k.Name] = v
		}
		d.generated.Insert(k.Name)
		d.rendered.Delete(k.Name)
	}
	return nil
}

// rotate the values when their time has come. That they were is recorded in the same draft, so a crash leaves either all of it or
// nothing.
func (d *draft) rotate() error {
	if d.alternates() {
		return d.alternate()
	}
	p := d.cr.Spec.ForProvider.Rotation
	if !due(p, d.record, d.now) {
		return nil
	}
	next := d.record
	next.rotatedAt = d.now.UTC().Truncate(time.Second)
	keeps := previousUntil(p, next).After(next.rotatedAt)
	for _, k := range keys(d.cr) {
		if name := k.Name + v1alpha1.SuffixPrevious; keeps && d.foreign(name) {
			d.miss(errForeign(d.Secret, name))
			return nil
		}
	}
	for _, k := range keys(d.cr) {
		v, err := generate(d.cr.Spec.ForProvider, k)
		if err != nil {
			return err
		}
		if keeps {
			d.move(k.Name)
			for _, x := range k.Derive {
				d.move(x.Key)
			}
		}
		d.Data[k.Name] = v
	}
	d.rotatedAt = next.rotatedAt
	if p.ID != "" {
		d.rotationID = p.ID
	}
	return nil
}

// move the value of a key to where the previous one is kept.
func (d *draft) move(key string) {
	to := key + v1alpha1.SuffixPrevious
	if len(d.Data[key]) == 0 || d.foreign(key) || d.foreign(to) {
		return
	}
	d.Data[to] = d.Data[key]
	d.rendered.Insert(to)
}

// previous values are kept for a while, also of keys that are generated no more.
func (d *draft) previous() error {
	if !d.now.Before(previousUntil(d.cr.Spec.ForProvider.Rotation, d.record)) {
		return nil
	}
	for k := range d.generated {
		if name := k + v1alpha1.SuffixPrevious; d.rendered.Has(name) && len(d.Data[name]) > 0 {
			d.wanted.Insert(name)
		}
	}
	return nil
}

// derive from the values, and from the previous ones.
func (d *draft) derive() error {
	for _, k := range keys(d.cr) {
		for _, x := range k.Derive {
			d.deriveOne(k.Name, x.Key, x)
			if d.wanted.Has(k.Name + v1alpha1.SuffixPrevious) {
				d.deriveOne(k.Name+v1alpha1.SuffixPrevious, x.Key+v1alpha1.SuffixPrevious, x)
			}
		}
	}
	return nil
}

func (d *draft) deriveOne(from, to string, x v1alpha1.Derivation) {
	derived, err := d.memory.derive(d.Data[to], d.Data[from], x)
	if err != nil {
		d.miss(fmt.Errorf("nothing can be derived from key %q of Secret %q: %w", from, d.GetName(), err))
		return
	}
	d.put(to, derived)
}

// connect renders the keys of a connection.
func (d *draft) connect() error {
	c := d.cr.Spec.ForProvider.Connection
	if c == nil {
		return nil
	}
	now := *c
	now.Username = d.username()
	rendered := binding(now, d.Data[v1alpha1.KeyPassword])
	for _, k := range slices.Sorted(maps.Keys(rendered)) {
		d.put(k, []byte(rendered[k]))
	}
	switch {
	case c.CAFrom == nil:
	case d.noCA == nil:
		d.put(v1alpha1.KeyCA, d.ca)
	default:
		// The certificates that are there are better than none.
		had := d.rendered.Has(v1alpha1.KeyCA) && len(d.Data[v1alpha1.KeyCA]) > 0
		if had {
			d.wanted.Insert(v1alpha1.KeyCA)
		}
		d.missing = d.missing || !had
		if errors.As(d.noCA, &awaited{}) && !had {
			d.awaits = d.noCA
		} else {
			d.problems = append(d.problems, d.noCA)
		}
	}
	return nil
}

// leftovers are rendered keys that nothing asks for any more. They go: a verifier of a value that was rotated since would only
// mislead. Generated values stay, because nothing could bring them back.
func (d *draft) leftovers() error {
	for k := range d.rendered.Difference(d.wanted) {
		delete(d.Data, k)
	}
	d.rendered = d.wanted
	return nil
}

// put a rendered value where it belongs, unless another owner's is there.
func (d *draft) put(key string, value []byte) {
	if d.generated.Has(key) || d.foreign(key) && !bytes.Equal(d.Data[key], value) {
		d.miss(errForeign(d.Secret, key))
		return
	}
	d.Data[key] = value
	d.wanted.Insert(key)
}

// foreign keys hold something that was neither generated nor rendered here.
func (d *draft) foreign(key string) bool {
	return len(d.Data[key]) > 0 && !d.generated.Has(key) && !d.rendered.Has(key)
}

// miss a key, and say why.
func (d *draft) miss(why error) {
	d.missing = true
	d.problems = append(d.problems, why)
}
