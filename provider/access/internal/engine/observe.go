// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
)

// Observe returns what is as the spec says.
func Observe(s Seen, w Wanted, p Plan) v1alpha1.AccessObservation {
	out := v1alpha1.AccessObservation{}
	for _, name := range slices.Sorted(slices.Values(w.Databases)) {
		if d, ok := s.Database(name, w.Extensions); ok && !p.open(Subject{Database: name}) {
			out.Databases = append(out.Databases, d)
		}
	}
	for _, l := range w.Logins {
		if s.Role(l.Name).Open && l.Opens && !p.open(Subject{Login: l.Name}) {
			out.Logins = append(out.Logins, l.Of)
		}
	}
	slices.Sort(out.Logins)
	out.Alternating = alternating(s, w, p)
	return out
}

// alternating logins as they are.
func alternating(s Seen, w Wanted, p Plan) []v1alpha1.AlternatingLogin {
	var out []v1alpha1.AlternatingLogin
	for _, o := range w.Others {
		i := slices.IndexFunc(w.Logins, func(l Login) bool { return l.Of == o.Of })
		if i < 0 {
			continue
		}
		a := v1alpha1.AlternatingLogin{Name: o.Of, Active: w.Logins[i].Name}
		if r := s.Role(o.Name); o.Opens && !p.open(Subject{Login: o.Name}) {
			a.Accepted = o.Token
		} else if r.Ours && r.Open && o.Kept() {
			a.Retiring = o.Name
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b v1alpha1.AlternatingLogin) int { return strings.Compare(a.Name, b.Name) })
	return out
}
