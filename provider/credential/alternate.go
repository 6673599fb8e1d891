// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// alternates reports whether two usernames take turns.
func (d *draft) alternates() bool {
	c := d.cr.Spec.ForProvider.Connection
	return c != nil && c.AlternateUsername != ""
}

// count the values from the first on, where two usernames take turns. A Secret that is recreated gets the next: clients may still
// log in with the values that it had, which are good as long as the username before overlaps. What the Secret says of the
// username counts for more than a number that a person has removed from it.
func (d *draft) count() {
	if !d.alternates() {
		d.generation, d.staged, d.stagedID = 0, "", ""
		return
	}
	before := d.cr.Status.AtProvider.Generation
	switch {
	case d.generation > 0:
	case d.fresh:
		d.generation = before + 1
	default:
		d.generation = max(before, 1)
		if was := string(d.Data[v1alpha1.KeyUsername]); was != "" && was != d.username() && d.names(was) {
			d.generation++
		}
	}
}

// names reports whether a username is one of the two.
func (d *draft) names(username string) bool {
	c := d.cr.Spec.ForProvider.Connection
	return username == c.Username || username == c.AlternateUsername
}

// username of the values that are in use.
func (d *draft) username() string {
	c := d.cr.Spec.ForProvider.Connection
	if d.alternates() && d.generation%2 == 0 {
		return c.AlternateUsername
	}
	return c.Username
}

// alternate usernames, when the time for other values has come: those are staged first, and take their place when what they
// open accepts them. Each is written in one request, so that clients find one username with its values or the other.
func (d *draft) alternate() error {
	p := d.cr.Spec.ForProvider.Rotation
	switch {
	case p == nil:
		// They are not requested any more.
		d.staged, d.stagedID = "", ""
		return nil
	case d.staged == "" && !due(p, d.record, d.now):
		return nil
	case d.staged == "" || !d.complete():
		return d.stage(p)
	case d.staged == p.Accepted:
		d.flip(p)
		return nil
	default:
		for _, k := range keys(d.cr) {
			d.wanted.Insert(k.Name + v1alpha1.SuffixNext)
		}
		return nil
	}
}

// complete reports whether there is a staged value of every key.
func (d *draft) complete() bool {
	for _, k := range keys(d.cr) {
		if name := k.Name + v1alpha1.SuffixNext; !d.rendered.Has(name) || len(d.Data[name]) == 0 {
			return false
		}
	}
	return true
}

// stage the next values, under a name that none had before: what accepted others has not accepted these.
func (d *draft) stage(p *v1alpha1.Rotation) error {
	for _, k := range keys(d.cr) {
		if name := k.Name + v1alpha1.SuffixNext; d.generated.Has(name) || d.foreign(name) {
			d.miss(errForeign(d.Secret, name))
			return nil
		}
	}
	for _, k := range keys(d.cr) {
		v, err := generate(d.cr.Spec.ForProvider, k)
		if err != nil {
			return err
		}
		d.put(k.Name+v1alpha1.SuffixNext, v)
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	d.staged, d.stagedID = fmt.Sprintf("%d-%s", d.generation+1, hex.EncodeToString(random)), p.ID
	return nil
}

// flip to the staged values and to the other username.
func (d *draft) flip(p *v1alpha1.Rotation) {
	d.rotatedAt = d.now.UTC().Truncate(time.Second)
	keeps := previousUntil(p, d.record).After(d.rotatedAt)
	for _, k := range keys(d.cr) {
		if keeps {
			d.move(k.Name)
			for _, x := range k.Derive {
				d.move(x.Key)
			}
		}
		d.Data[k.Name] = d.Data[k.Name+v1alpha1.SuffixNext]
	}
	d.generation++
	if d.stagedID != "" {
		d.rotationID = d.stagedID
	}
	d.staged, d.stagedID = "", ""
}

// overlap of the username before with the one that is in use.
func (d *draft) overlap() error {
	d.overlapUntil = time.Time{}
	if until := previousUntil(d.cr.Spec.ForProvider.Rotation, d.record); d.alternates() && d.generation > 1 && d.now.Before(until) {
		d.overlapUntil = until
	}
	return nil
}

func isNext(key string) bool { return strings.HasSuffix(key, v1alpha1.SuffixNext) }
