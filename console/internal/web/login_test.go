// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A provider of logins that signs what a test says.
type provider struct {
	*httptest.Server

	t      *testing.T
	key    *rsa.PrivateKey
	claims map[string]any
	// challenge and nonce of the login under way.
	challenge, nonce string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, claims: map[string]any{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // A test answers.
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge || r.PostFormValue("code") != "good" {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": "invalid_grant"})

			return
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token()})
	})

	return p
}

func (p *provider) token() string {
	p.t.Helper()
	claims := map[string]any{"iss": p.URL, "aud": "capstan", "sub": "alice", "nonce": p.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, p.claims)
	data, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(data)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}

	return text
}

// TestOIDC logs in by a provider, and refuses each answer that is not of the login that the browser began.
func TestOIDC(t *testing.T) {
	cases := map[string]struct {
		reason  string
		claims  map[string]any
		code    string
		state   string
		noLogin bool
		unknown bool
		want    string
	}{
		"Good":        {reason: "A login ends at the page that asked for it.", code: "good", want: "Namespace shop"},
		"OtherState":  {reason: "An answer to another login.", code: "good", state: "other", want: "The answer is not of a login that this browser began"},
		"NoLogin":     {reason: "A browser that began none.", code: "good", noLogin: true, want: "The answer is not of a login that this browser began"},
		"BadCode":     {reason: "The provider knows no such code.", code: "bad", want: "The provider did not accept the login"},
		"OtherNonce":  {reason: "A token of another login.", code: "good", claims: map[string]any{"nonce": "other"}, want: "cannot be verified"},
		"OtherClient": {reason: "A token for another program.", code: "good", claims: map[string]any{"aud": "mail"}, want: "cannot be verified"},
		"OtherIssuer": {reason: "A token of another provider.", code: "good", claims: map[string]any{"iss": "https://attacker.example"}, want: "cannot be verified"},
		"Ended":       {reason: "A token that is over.", code: "good", claims: map[string]any{"exp": 1000}, want: "cannot be verified"},
		"Stranger":    {reason: "The API server does not know the user.", code: "good", unknown: true, want: "The API server does not accept the token of the provider"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.claims = tc.claims
			r := newRig(t, func(o *Options) {
				var err error
				o.Paste = false
				if o.OIDC, err = NewOIDC(t.Context(), p.URL, "capstan", "", o.URL.String()+"/login/callback", []string{"groups"}); err != nil {
					t.Fatal(err)
				}
			})
			// Any token of this provider is alice's for the API server.
			r.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
				if strings.HasPrefix(req.URL.String(), p.URL) {
					return http.ErrUseLastResponse
				}

				return nil
			}
			_, page := r.get("/n/shop")
			sees(t, page, "Log in with")
			if strings.Contains(page, `name="token"`) {
				t.Error("nobody may paste a token here")
			}
			rsp, err := r.client.Get(r.address + "/login/oidc?next=/n/shop")
			if err != nil {
				t.Fatal(err)
			}
			_ = rsp.Body.Close()
			to, err := url.Parse(rsp.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			query := to.Query()
			if query.Get("code_challenge_method") != "S256" || query.Get("redirect_uri") != r.address+"/login/callback" || query.Get("scope") != "openid groups" {
				t.Errorf("the login begins with %v", query)
			}
			p.challenge, p.nonce = query.Get("code_challenge"), query.Get("nonce")
			if !tc.unknown {
				r.api.mu.Lock()
				r.api.anyone = "alice"
				r.api.mu.Unlock()
			}
			state := query.Get("state")
			if tc.state != "" {
				state = tc.state
			}
			if tc.noLogin {
				r.fresh()
			}
			code, page := r.get("/login/callback?code=" + tc.code + "&state=" + url.QueryEscape(state))
			sees(t, page, tc.want)
			if (code == http.StatusOK) != (name == "Good") {
				t.Errorf("%s Got %d", tc.reason, code)
			}
			if code, _ := r.get("/n/shop"); (code == http.StatusOK) != (name == "Good") {
				t.Errorf("%s Afterwards: %d", tc.reason, code)
			}
			if name == "Good" {
				if code, _ := r.get("/login/callback?code=good&state=" + url.QueryEscape(state)); code != http.StatusUnauthorized {
					t.Errorf("a login counts once: %d", code)
				}
				// Neither that answer nor a login that only begins ends the one there is.
				rsp, err := r.client.Get(r.address + "/login/oidc")
				if err != nil {
					t.Fatal(err)
				}
				_ = rsp.Body.Close()
				if code, _ := r.get("/n/shop"); code != http.StatusOK {
					t.Errorf("a link of others ended the login: %d", code)
				}
			}
		})
	}
}
