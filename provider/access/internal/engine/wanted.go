// SPDX-License-Identifier: Apache-2.0

package engine

import "slices"

// Wanted is what the spec asks of a server.
type Wanted struct {
	Databases  []string
	Logins     []Login
	Extensions []string

	// Others are the roles that alternate with logins and are not in use.
	Others []Other
}

// A Login that the spec asks for.
type Login struct {
	Name, Database string
	ReadOnly       bool

	// Of is its name in the spec, which is the name of one of two alternating roles.
	Of string

	// Staged means that the password is the next one, not yet in use.
	Staged bool

	// Password, or "" when it is unknown: then the login stays as it is.
	Password string

	// Opens means that the password opens the login.
	Opens bool
}

// An Other role takes turns with a login and is not in use. Which of the two is in use the Secret that clients have says, read in
// the same pass, so that a login that clients can read there is never shut out.
type Other struct {
	Login

	// Unknown means that the Secret does not say which role is in use: this one stays as it is.
	Unknown bool

	// Token names the password to come that is staged for it, if there is one.
	Token string

	// Overlaps means that clients may still log in with it; Idle that none did for a while.
	Overlaps, Idle bool

	// WhenIdle ends the overlap as soon as it is idle.
	WhenIdle bool
}

// Kept reports whether the role stays as it is for clients that still have it.
func (o Other) Kept() bool { return o.Unknown || o.Overlaps && (!o.WhenIdle || !o.Idle) }

// Names of all logins, those that alternate included.
func (w Wanted) Names() []string {
	all := make([]string, 0, len(w.Logins)+len(w.Others))
	for _, l := range w.Logins {
		all = append(all, l.Name)
	}
	for _, o := range w.Others {
		all = append(all, o.Name)
	}
	return all
}

// Named is the login or the other role of a name, if it is wanted.
func (w Wanted) Named(name string) (Login, bool) {
	if i := slices.IndexFunc(w.Others, func(o Other) bool { return o.Name == name }); i >= 0 {
		return w.Others[i].Login, true
	}
	if i := slices.IndexFunc(w.Logins, func(l Login) bool { return l.Name == name }); i >= 0 {
		return w.Logins[i], true
	}
	return Login{}, false
}
