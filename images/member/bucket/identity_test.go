// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const role = "arn:aws:iam::123456789012:role/shop/backups"

// secret of a bucket of AWS, without keys.
func secret() map[string]string {
	return map[string]string{"endpoint": "https://s3.eu-central-1.amazonaws.com", "region": "eu-central-1", "bucket": "shop-orders"}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadWithoutKeys(t *testing.T) {
	own := &Identity{Role: role, TokenFile: "/token"}
	at := func(sts string) *Identity { return &Identity{Role: role, TokenFile: "/token", STS: sts} }
	for name, tc := range map[string]struct {
		reason string
		own    *Identity
		change map[string]string
		want   *Identity
		err    string
	}{
		"Role":      {"A role stands in for keys.", own, nil, at("sts.eu-central-1.amazonaws.com"), ""},
		"China":     {"Regions of China have a domain of their own.", own, map[string]string{"endpoint": "https://s3.cn-north-1.amazonaws.com.cn", "region": "cn-north-1"}, at("sts.cn-north-1.amazonaws.com.cn"), ""},
		"Endpoint":  {"A private way to S3 is below the same domain.", own, map[string]string{"endpoint": "https://bucket.vpce-0a1b.s3.eu-central-1.vpce.amazonaws.com"}, at("sts.eu-central-1.amazonaws.com"), ""},
		"Keys":      {"Who gives keys wants them used.", own, map[string]string{"accessKeyId": "id", "secretAccessKey": "key"}, nil, ""},
		"HalfAKey":  {"One that was forgotten is no wish for a role.", own, map[string]string{"accessKeyId": "id"}, nil, "has no secretAccessKey"},
		"NoRole":    {"Without both nothing opens it.", nil, nil, nil, "spec.workloadIdentity"},
		"Other":     {"A server that is not AWS would get what opens AWS.", own, map[string]string{"endpoint": "https://s3.example.org"}, nil, "of AWS only, not of s3.example.org"},
		"AlmostAWS": {"A domain of others may look like it.", own, map[string]string{"endpoint": "https://s3.evilamazonaws.com"}, nil, "of AWS only"},
		"Port":      {"AWS has one port.", own, map[string]string{"endpoint": "https://s3.eu-central-1.amazonaws.com:9000"}, nil, "of AWS only"},
		"Region":    {"The region is a part of a host name, and must not choose another host.", own, map[string]string{"region": "evil.example.org/"}, nil, "correct it"},
	} {
		t.Run(name, func(t *testing.T) {
			files := secret()
			maps.Copy(files, tc.change)
			got, err := Read(folder(t, files), tc.own)
			if diff := cmp.Diff(tc.want, got.Identity); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			var n *NotReadyError
			if (err != nil) != (tc.err != "") || err != nil && (!errors.As(err, &n) || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: got error %v, want one with %q", tc.reason, err, tc.err)
			}
		})
	}
}

// TestOwnIdentity is there when both variables are.
func TestOwnIdentity(t *testing.T) {
	t.Setenv("AWS_ROLE_ARN", role)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "")
	if got := OwnIdentity(); got != nil {
		t.Errorf("without a token there is %+v", got)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")
	if diff := cmp.Diff(&Identity{Role: role, TokenFile: "/token"}, OwnIdentity()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// standIn answers in place of the STS. The client reaches it by any name.
func standIn(t *testing.T, handle http.HandlerFunc) *http.Client {
	t.Helper()
	s := httptest.NewTLSServer(handle)
	t.Cleanup(s.Close)
	transport, _ := s.Client().Transport.(*http.Transport)
	transport.TLSClientConfig.ServerName = "example.com"
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}
	return &http.Client{Transport: transport}
}

// TestKeys of a role are asked for with the token that the file has at that time, and again before they end.
func TestKeys(t *testing.T) {
	file := filepath.Join(folder(t, map[string]string{"token": "first"}), "token")
	lasts, n := time.Hour, 0
	client := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		for name, want := range map[string]string{"Action": "AssumeRoleWithWebIdentity", "RoleArn": role, "WebIdentityToken": []string{"", "first", "second", "second"}[n]} {
			if got := r.PostFormValue(name); got != want {
				t.Errorf("request %d has %s %q, want %q", n, name, got, want)
			}
		}
		if r.URL.RawQuery != "" {
			t.Error("the token is in a URL, which errors quote")
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>id-%[1]d</AccessKeyId><SecretAccessKey>key-%[1]d</SecretAccessKey><SessionToken>session-%[1]d</SessionToken><Expiration>%[2]s</Expiration>`+
			`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, n, time.Now().Add(lasts).UTC().Format(time.RFC3339))
	})
	c := Connection{Identity: &Identity{Role: role, TokenFile: file, STS: "sts.eu-central-1.amazonaws.com"}}
	keys := c.Keys(client)
	expect := func(want string) {
		t.Helper()
		got, err := keys.Retrieve(t.Context())
		if err != nil || got.AccessKeyID+" "+got.SecretAccessKey+" "+got.SessionToken != want {
			t.Errorf("got keys %+v, %v, want %s", got, err, want)
		}
	}
	expect("id-1 key-1 session-1")
	expect("id-1 key-1 session-1")
	lasts = renewBefore - time.Second
	keys = c.Keys(client)
	if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("id-2 key-2 session-2")
	expect("id-3 key-3 session-3")
}

func TestKeysAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		handle http.HandlerFunc
		want   string
	}{
		"Denied": {"The trust policy names another account.", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error><RequestId>1</RequestId></ErrorResponse>`)
		}, "cannot take the role " + role + ": sts.eu-central-1.amazonaws.com answers with HTTP status 403 and AccessDenied: see its trust policy"},
		"Proxy": {"What is between answers in its own way.", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "HTTP status 502"},
		"Elsewhere": {"The token goes to no other host.", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://s3.example.org/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "HTTP status 307"},
		"Nothing": {"No keys are no answer.", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse/>`)
		}, "HTTP status 200 without keys"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &Identity{Role: role, TokenFile: filepath.Join(folder(t, map[string]string{"token": "mine"}), "token"), STS: "sts.eu-central-1.amazonaws.com"}
			_, err := Connection{Identity: i}.Keys(standIn(t, tc.handle)).Retrieve(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "mine") {
				t.Errorf("%s: got error %v, want one with %q", tc.reason, err, tc.want)
			}
		})
	}
}
