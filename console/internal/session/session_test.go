// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

func keeper(t *testing.T, key string, secure bool) *Keeper {
	t.Helper()
	k, err := New([]byte(strings.Repeat(key, 32)), secure)
	if err != nil {
		t.Fatal(err)
	}

	return k
}

// cookies that an answer sets.
func cookies(t *testing.T, k *Keeper, s *Session) []*http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if err := k.Write(w, s, now); err != nil {
		t.Fatal(err)
	}

	return w.Result().Cookies()
}

func request(all []*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range all {
		if c.MaxAge >= 0 {
			r.AddCookie(c)
		}
	}

	return r
}

func TestSession(t *testing.T) {
	k := keeper(t, "k", true)
	for reason, token := range map[string]string{"A short token.": "t", "A token with many groups.": strings.Repeat("long", 2000)} {
		s := &Session{ID: "id", Token: token, User: "alice", Expires: now.Add(time.Hour)}
		all := cookies(t, k, s)
		if diff := cmp.Diff(s, k.Read(request(all))); diff != "" {
			t.Errorf("%s -written, +read:\n%s", reason, diff)
		}
		for _, c := range all {
			if !strings.HasPrefix(c.Name, "__Host-") || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("%s cookie %+v", reason, c)
			}
			if strings.Contains(c.Value, token) && len(token) > 2 || len(c.String()) > 4096 {
				t.Errorf("%s the cookie has %d bytes", reason, len(c.String()))
			}
		}
	}
	if err := k.Write(httptest.NewRecorder(), &Session{Token: strings.Repeat("x", 20000)}, now); err == nil {
		t.Error("a token that no browser keeps has to be refused")
	}
	if _, err := New([]byte("short"), true); err == nil {
		t.Error("a short key has to be refused")
	}
}

// TestOtherSessions: what was changed, or encrypted with another key, is a new session.
func TestOtherSessions(t *testing.T) {
	k := keeper(t, "k", false)
	s := &Session{ID: "id", Token: "secret", Expires: now.Add(time.Hour)}
	changed := cookies(t, k, s)
	changed[0].Value = "A" + changed[0].Value[1:] + "AA"
	cases := map[string]*http.Request{
		"None.":               request(nil),
		"Changed.":            request(changed),
		"Of another console.": request(cookies(t, keeper(t, "o", false), s)),
		"Nonsense.":           request([]*http.Cookie{{Name: "capstan0", Value: "%%%"}}),
	}
	for reason, r := range cases {
		if got := k.Read(r); got.Token != "" || got.ID == "" || got.ID == "id" {
			t.Errorf("%s Got %+v", reason, got)
		}
	}
	if got := keeper(t, "k", false).Read(request(cookies(t, k, s))); got.Token != "secret" {
		t.Errorf("the same key reads it: %+v", got)
	}
}

func TestEnd(t *testing.T) {
	for reason, tc := range map[string]struct {
		session Session
		want    bool
	}{
		"In time.":             {Session{Token: "t", Expires: now.Add(time.Second)}, true},
		"Over.":                {Session{Token: "t", Expires: now}, false},
		"Nobody is logged in.": {Session{Expires: now.Add(time.Hour)}, false},
	} {
		if got := tc.session.LoggedIn(now); got != tc.want {
			t.Errorf("%s Got %t", reason, got)
		}
	}
	// A token without an end, or with one far away, is not kept for ever.
	k := keeper(t, "k", false)
	for _, expires := range []time.Time{{}, now.Add(1000 * time.Hour)} {
		s := &Session{ID: "id", Token: "t", Expires: expires}
		cookies(t, k, s)
		if !s.Expires.Equal(now.Add(longest)) {
			t.Errorf("it ends at %s", s.Expires)
		}
	}
}

func TestFormToken(t *testing.T) {
	k := keeper(t, "k", false)
	one, other := &Session{ID: "one"}, &Session{ID: "other"}
	if !k.Genuine(one, k.FormToken(one)) {
		t.Error("a form of this session is genuine")
	}
	for reason, token := range map[string]string{
		"Of another session.": k.FormToken(other), "Of another console.": keeper(t, "o", false).FormToken(one), "Empty.": "",
	} {
		if k.Genuine(one, token) {
			t.Errorf("%s It is not genuine", reason)
		}
	}
}
