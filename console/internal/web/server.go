// SPDX-License-Identifier: Apache-2.0

// Package web answers browsers. Each answer is made with the token of the user that asks, and nothing is kept for the next one.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/console/internal/draft"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/pages"
	"github.com/capstan-dev/capstan/console/internal/session"
	"github.com/capstan-dev/capstan/provider/curve"
)

// Options of a Server.
type Options struct {
	// URL at which browsers reach the console. Requests for another host are refused.
	URL *url.URL

	// Kube is the API server.
	Kube *kube.Server

	// Sessions are the keeper of sessions.
	Sessions *session.Keeper

	// OIDC is the provider of logins, or nil.
	OIDC *OIDC

	// Paste allows logins with a token that a person pastes.
	Paste bool

	// Streams is how many pages can be live at the same time. One user has at most a fifth of them, or two.
	Streams int

	// Curves are what checks measured, or nil.
	Curves *curve.Source

	// Log of what failed. It has no tokens and nothing that a user typed.
	Log *slog.Logger

	// Version of the release, whose planners are in this program.
	Version string

	// Now is the time. Default: time.Now.
	Now func() time.Time
}

// A Server of pages.
type Server struct {
	Options

	streams         *streams
	plans, drawings *turns
	// over ends when the program does, and with it all streams.
	over context.Context //nolint:containedctx // Shutdown does not end requests that last.
}

// New handler of all requests.
func New(ctx context.Context, o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{Options: o, streams: &streams{most: o.Streams, of: map[string]int{}}, over: ctx}
	s.plans, s.drawings = newPlans(), newTurns(mostCurves, curvesAtOnce, curvesTimeout, errCurvesBusy)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /static/{sum}/{name}", pages.Static)
	mux.Handle("GET /login", s.page(s.login))
	mux.Handle("POST /login", s.page(s.paste))
	mux.Handle("GET /login/oidc", s.page(s.toProvider))
	mux.Handle("GET /login/callback", s.page(s.fromProvider))
	mux.Handle("POST /logout", s.page(s.logout))
	mux.Handle("GET /{$}", s.user(s.namespaces))
	mux.Handle("GET /n/{ns}", s.user(s.list))
	mux.Handle("GET /n/{ns}/live", s.user(s.listLive))
	mux.Handle("GET /n/{ns}/{kind}/new", s.user(s.edit))
	mux.Handle("POST /n/{ns}/{kind}/new", s.user(s.submit))
	mux.Handle("GET /n/{ns}/{kind}/o/{name}", s.user(s.object))
	mux.Handle("GET /n/{ns}/{kind}/o/{name}/live", s.user(s.objectLive))
	mux.Handle("GET /n/{ns}/{kind}/o/{name}/curves", s.user(s.curves))
	mux.Handle("GET /n/{ns}/{kind}/o/{name}/edit", s.user(s.edit))
	mux.Handle("POST /n/{ns}/{kind}/o/{name}/edit", s.user(s.submit))
	mux.Handle("GET /n/{ns}/{kind}/o/{name}/act/{act}", s.user(s.act))
	mux.Handle("POST /n/{ns}/{kind}/o/{name}/act/{act}", s.user(s.carryOut))
	mux.Handle("/", s.page(func(*call) error { return errNotFound }))
	inner := http.NewCrossOriginProtection().Handler(mux)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			_, _ = w.Write([]byte("ok\n"))

			return
		}
		s.guard(w.Header())
		// Another name for this address is how a page elsewhere would reach a console on this machine.
		if !sameHost(r.Host, s.URL.Host) {
			http.Error(w, "This console has another address.", http.StatusMisdirectedRequest)

			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 4*draft.Limit)
		inner.ServeHTTP(w, r)
	})
}

func sameHost(have, want string) bool {
	return strings.EqualFold(have, want) || strings.EqualFold(hostOf(have), hostOf(want)) && loopback(want)
}

// loopback reports whether a host is this machine. Then its port may be another one: a forward of kubectl chooses it.
func loopback(host string) bool {
	name := hostOf(host)
	ip := net.ParseIP(strings.Trim(name, "[]"))

	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}

	return hostport
}

// CheckURL refuses an address at which tokens would travel in clear text.
func CheckURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return fmt.Errorf("the address %q has to be a scheme and a host, for instance https://capstan.example.org", u)
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Host):
		return nil
	default:
		return fmt.Errorf("the address %q has to begin with https, because tokens of users travel there; http is for localhost only", u)
	}
}

// guard what a browser does with the pages.
func (s *Server) guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if s.URL.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// A call is one request of one user.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	now     time.Time
	session *session.Session
	client  *kube.Client

	kind            kube.Kind
	namespace, name string
}

// A frame is what every page has.
type frame struct {
	Title, User, CSRF, Namespace string
	// Done is the page whose draft was applied.
	Done string
	// Out is true after a logout.
	Out     bool
	Problem *kube.Problem
}

func (s *Server) frame(c *call, title string) frame {
	f := frame{Title: title, CSRF: s.Sessions.FormToken(c.session), Namespace: c.namespace}
	if c.session.LoggedIn(c.now) {
		f.User = c.session.User
	}

	return f
}

var (
	errNotFound = &kube.Problem{Title: "There is no such page", Detail: "Follow a link instead, or check the address.", Status: http.StatusNotFound}
	errForged   = &kube.Problem{
		Title: "This form is not of this login", Detail: "Open the page again, then send it again. Nothing was changed.", Status: http.StatusForbidden,
	}
)

// problemOf an error, for people.
func problemOf(err error) *kube.Problem {
	if p := (*kube.Problem)(nil); errors.As(err, &p) {
		return p
	}

	return &kube.Problem{Title: "This cannot be done", Detail: err.Error(), Status: http.StatusUnprocessableEntity}
}

// page answers everybody.
func (s *Server) page(answer func(*call) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, r: r, now: s.Now(), session: s.Sessions.Read(r)}
		if err := s.answer(c, answer); err != nil {
			s.fail(c, err)
		}
	})
}

func (s *Server) answer(c *call, answer func(*call) error) error {
	if c.r.Method == http.MethodPost {
		if err := c.r.ParseForm(); err != nil {
			return &kube.Problem{Title: "The form cannot be read", Detail: "It is too large or not whole. Nothing was changed.", Status: http.StatusBadRequest}
		}
	}

	return answer(c)
}

// user answers who is logged in, with a client of that user, about a namespace and a kind that can exist.
func (s *Server) user(answer func(*call) error) http.Handler {
	return s.page(func(c *call) error {
		if !c.session.LoggedIn(c.now) {
			return s.ended(c)
		}
		if c.r.Method == http.MethodPost && !s.Sessions.Genuine(c.session, c.r.PostFormValue("csrf")) {
			return errForged
		}
		if err := c.address(); err != nil {
			return err
		}
		var err error
		if c.client, err = s.Kube.As(c.session.Token); err != nil {
			return err
		}
		err = answer(c)
		if kube.Ended(err) {
			return s.ended(c)
		}

		return err
	})
}

// address of a call: names that no object can have are refused before any request to the API server.
func (c *call) address() error {
	c.namespace, c.name = c.r.PathValue("ns"), c.r.PathValue("name")
	if c.namespace != "" && len(validation.IsDNS1123Label(c.namespace)) > 0 || c.name != "" && len(validation.IsDNS1123Subdomain(c.name)) > 0 {
		c.namespace = ""

		return errNotFound
	}
	if resource := c.r.PathValue("kind"); resource != "" {
		var ok bool
		if c.kind, ok = kube.KindOf(resource); !ok {
			return errNotFound
		}
	}

	return nil
}

// fail with a page that says why.
func (s *Server) fail(c *call, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.Log.Warn("cannot answer", "method", c.r.Method, "route", c.r.Pattern, "status", p.Status, "error", p.Title)
	}
	f := s.frame(c, p.Title)
	f.Problem = p
	_ = s.render(c, p.Status, "failure", f)
}

func (s *Server) render(c *call, status int, name string, data any) error {
	html, err := pages.Render(name, data)
	if err != nil {
		s.Log.Error("cannot render", "page", name, "error", err)
		http.Error(c.w, "This page cannot be made.", http.StatusInternalServerError)

		return nil
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status < 400 || status > 599 {
		status = http.StatusOK
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(html)

	return nil
}

// redirect to a page of the console.
func (c *call) redirect(to string) error {
	http.Redirect(c.w, c.r, to, http.StatusSeeOther)

	return nil
}
