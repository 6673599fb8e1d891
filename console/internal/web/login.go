// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/capstan-dev/capstan/console/internal/draft"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
)

// An OIDC provider whose tokens the API server accepts.
type OIDC struct {
	issuer   string
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// NewOIDC discovers a provider. The secret is empty for a public client: the login is protected by PKCE in either case.
func NewOIDC(ctx context.Context, issuer, client, secret, callback string, scopes []string) (*OIDC, error) {
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, fmt.Errorf("cannot discover the OIDC provider %s: %w", issuer, err)
	}

	return &OIDC{
		issuer: issuer,
		config: oauth2.Config{
			ClientID: client, ClientSecret: secret, Endpoint: provider.Endpoint(), RedirectURL: callback,
			Scopes: append([]string{oidc.ScopeOpenID}, scopes...),
		},
		verifier: provider.Verifier(&oidc.Config{ClientID: client}),
	}, nil
}

type loginPage struct {
	frame

	Next, OIDC, Typed string
	Paste             bool
}

func (s *Server) loginPage(c *call, status int, p *kube.Problem, typed string) error {
	f := s.frame(c, "Log in")
	f.Problem, f.User, f.Namespace = p, "", ""
	page := loginPage{frame: f, Next: local(c.r.FormValue("next")), Paste: s.Paste, Typed: typed}
	if c.r.URL.Path != "/login" {
		page.Next = local(c.r.URL.Path)
	}
	if s.OIDC != nil {
		page.OIDC = s.OIDC.issuer
	}

	return s.render(c, status, "login", page)
}

// local is an address below this console: a login never ends elsewhere.
func local(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "/log") {
		return "/"
	}

	return next
}

// visit gives the browser a session to log in with, so that forged forms are recognised.
func (s *Server) visit(c *call) error {
	if err := s.Sessions.Write(c.w, c.session, c.now); err != nil {
		return fmt.Errorf("cannot begin a login: %w", err)
	}

	return nil
}

func (s *Server) login(c *call) error {
	if c.session.LoggedIn(c.now) {
		return c.redirect(local(c.r.FormValue("next")))
	}
	c.session.Token, c.session.User, c.session.Expires = "", "", time.Time{}
	if err := s.visit(c); err != nil {
		return err
	}

	return s.loginPage(c, http.StatusOK, nil, "")
}

// ended answers who is not logged in, or not any more. What was typed is shown, so that it can be copied even without a script.
func (s *Server) ended(c *call) error {
	if strings.HasSuffix(c.r.URL.Path, "/live") {
		// An EventSource that gets no stream connects again and again, unless the stream ends it.
		c.w.Header().Set("Content-Type", "text/event-stream")
		_, _ = c.w.Write([]byte("event: ended\ndata: -\n\n"))

		return nil
	}
	c.session.Token, c.session.User, c.session.Expires = "", "", time.Time{}
	if err := s.visit(c); err != nil {
		return err
	}
	typed := ""
	if c.r.Method == http.MethodPost {
		typed = c.r.PostFormValue("yaml")
		if fields := c.typedFields(); len(fields) > 0 {
			typed = strings.Join(fields, "\n") + "\n" + typed
		}
		typed = typed[:min(len(typed), draft.Limit)]
	}

	return s.loginPage(c, http.StatusUnauthorized, nil, typed)
}

// paste logs in with a token.
func (s *Server) paste(c *call) error {
	if !s.Sessions.Genuine(c.session, c.r.PostFormValue("csrf")) {
		return errForged
	}
	if !s.Paste {
		return errNotFound
	}
	if err := s.accept(c, strings.TrimSpace(c.r.PostFormValue("token")), time.Time{}); err != nil {
		p := problemOf(err)
		if kube.Ended(err) {
			p = &kube.Problem{Title: "The API server does not accept this token", Detail: "It may have ended, or be for another cluster. Paste another one.", Status: http.StatusUnauthorized}
		}

		return s.loginPage(c, p.Status, p, "")
	}

	return c.redirect(local(c.r.PostFormValue("next")))
}

// accept a token that the API server knows.
func (s *Server) accept(c *call, token string, expires time.Time) error {
	client, err := s.Kube.As(token)
	if err != nil {
		return err //nolint:wrapcheck // It is for people already.
	}
	user, err := client.User(c.r.Context())
	if err != nil {
		return err //nolint:wrapcheck // It is for people already.
	}
	if expires.IsZero() {
		expires = endOf(token)
	}
	c.session = &session.Session{ID: session.Random(), Token: token, User: user, Expires: expires}
	if err := s.Sessions.Write(c.w, c.session, c.now); err != nil {
		return fmt.Errorf("cannot log in: %w", err)
	}

	return nil
}

// endOf a token, when it says so. The API server decides; this only spares requests that would be refused.
func endOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}
	}

	return time.Unix(int64(claims.Expires), 0)
}

// toProvider begins a login with the OIDC provider.
func (s *Server) toProvider(c *call) error {
	if s.OIDC == nil {
		return errNotFound
	}
	l := &session.Login{State: session.Random(), Nonce: session.Random(), Verifier: oauth2.GenerateVerifier(), Next: local(c.r.FormValue("next"))}
	// A login that is there stays until another one has succeeded: a link of others must not end it.
	c.session.Login = l
	if err := s.visit(c); err != nil {
		return err
	}

	return c.redirect(s.OIDC.config.AuthCodeURL(l.State, oidc.Nonce(l.Nonce), oauth2.S256ChallengeOption(l.Verifier)))
}

// fromProvider ends it.
func (s *Server) fromProvider(c *call) error {
	l := c.session.Login
	refuse := func(detail string) error {
		if c.session.Login = nil; !c.session.LoggedIn(c.now) {
			c.session = &session.Session{ID: session.Random()}
		}
		if err := s.visit(c); err != nil {
			return err
		}

		return s.loginPage(c, http.StatusUnauthorized, &kube.Problem{Title: "The login failed", Detail: detail, Status: http.StatusUnauthorized}, "")
	}
	query := c.r.URL.Query()
	switch {
	case s.OIDC == nil:
		return errNotFound
	case l == nil || subtle.ConstantTimeCompare([]byte(l.State), []byte(query.Get("state"))) != 1:
		return refuse("The answer is not of a login that this browser began, or it came too late. Log in again.")
	case query.Get("error") != "":
		return refuse(fmt.Sprintf("The provider says %s: %s", query.Get("error"), query.Get("error_description")))
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 15*time.Second)
	defer cancel()
	tokens, err := s.OIDC.config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(l.Verifier))
	if err != nil {
		s.Log.Warn("cannot exchange the code of a login", "error", exchangeError(err))

		return refuse("The provider did not accept the login. Log in again.")
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := s.OIDC.verifier.Verify(ctx, raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(l.Nonce)) != 1 {
		s.Log.Warn("cannot verify the token of a login", "error", err)

		return refuse("The token of the provider cannot be verified. Report it to the platform team.")
	}
	if err := s.accept(c, raw, id.Expiry); err != nil {
		s.Log.Warn("the API server refuses the token of a login", "error", err)

		return refuse("The API server does not accept the token of the provider. It has to trust the same issuer and client: report it to the platform team.")
	}

	return c.redirect(l.Next)
}

// exchangeError without the answer of the provider, which may repeat what it was sent.
func exchangeError(err error) string {
	if r := (*oauth2.RetrieveError)(nil); errors.As(err, &r) && r.Response != nil {
		return strings.TrimSpace(r.Response.Status + " " + r.ErrorCode)
	}

	return err.Error()
}

func (s *Server) logout(c *call) error {
	if !s.Sessions.Genuine(c.session, c.r.PostFormValue("csrf")) {
		return errForged
	}
	s.Sessions.End(c.w)
	c.session = &session.Session{ID: session.Random()}
	f := s.frame(c, "Logged out")
	f.Out, f.Namespace = true, ""
	f.Problem = &kube.Problem{Title: "You are logged out", Detail: "Drafts in this tab are gone as well."}

	return s.render(c, http.StatusOK, "failure", f)
}
