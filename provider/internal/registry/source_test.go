// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestCheckSource(t *testing.T) {
	cases := map[string]struct {
		reason  string
		source  string
		allowed []string
		own     bool
		want    string
	}{
		"S3":             {reason: "A bucket.", source: "s3://models/reco/7"},
		"Artifacts":      {reason: "The registry's own store.", source: "mlflow-artifacts:/1/5c3a/artifacts/model"},
		"Unicode":        {reason: "Object stores take any letter.", source: "s3://models/größe/1"},
		"Escaped":        {reason: "Harmless escapes stay.", source: "s3://models/a%20b"},
		"Azure":          {reason: "A container at an account.", source: "abfss://models@acct.dfs.core.windows.net/reco"},
		"RunsOwn":        {reason: "With an own config the credentials decide.", source: "runs:/5c3a/model", own: true},
		"RunsAllowed":    {reason: "The platform allows it by name.", source: "runs:/5c3a/model", allowed: []string{"runs:/"}},
		"Runs":           {reason: "A run may be another's.", source: "runs:/5c3a/model", want: "other entries"},
		"Models":         {reason: "A model may be another's.", source: "models:/reco/1", want: "other entries"},
		"Empty":          {reason: "Nothing.", source: "", want: "is not the URI"},
		"Path":           {reason: "A path of the registry's host.", source: "/etc/passwd", want: "is not the URI"},
		"File":           {reason: "A file of the registry's host.", source: "file:///etc", want: "own files"},
		"FileOwn":        {reason: "Never, with an own config either.", source: "file:/etc", own: true, want: "own files"},
		"FileAllowed":    {reason: "Never, even when it is allowed.", source: "file:///models/x", allowed: []string{"file:///models/"}, want: "own files"},
		"UpperFile":      {reason: "The registry ignores case.", source: "FILE:///etc", want: "is not the URI"},
		"Drive":          {reason: "One letter is a drive of Windows.", source: "c:/models", want: "is not the URI"},
		"Opaque":         {reason: "Not absolute.", source: "s3:models/reco", want: "is not the URI"},
		"NoHost":         {reason: "Two slashes and no bucket.", source: "s3:///reco", want: "no host"},
		"DotDot":         {reason: "One step up.", source: "s3://models/../private", want: ".."},
		"EscapedDots":    {reason: "One step up, escaped.", source: "s3://models/%2e%2E/private", want: "escaped"},
		"TwiceEscaped":   {reason: "The registry decodes as often as it can.", source: "s3://models/%252e%252e/x", want: "escaped"},
		"EscapedSlash":   {reason: "A step that cannot be seen.", source: "s3://models/a%2fb", want: "escaped"},
		"EscapedNull":    {reason: "A character that ends names.", source: "s3://models/a%00b", want: "escaped"},
		"Backslash":      {reason: "Some take it for a slash.", source: `https://good.example.org\@evil/x`, want: `\ ? #`},
		"Query":          {reason: "A query may hold credentials, and hides paths.", source: "https://x.example.org/a?sig=1", want: `\ ? #`},
		"Fragment":       {reason: "A fragment hides paths.", source: "https://x.example.org/#/etc", want: `\ ? #`},
		"EmptyStep":      {reason: "A second host.", source: "mlflow-artifacts:/a//evil/x", want: "empty step"},
		"Dot":            {reason: "A step that is none.", source: "s3://models/./x", want: "empty step or ."},
		"Space":          {reason: "A space.", source: "s3://models/a b", want: "cannot be seen"},
		"Control":        {reason: "A control character.", source: "s3://models/a\x00b", want: "cannot be seen"},
		"Invisible":      {reason: "A character without width.", source: "s3://models/a\u200bb", want: "cannot be seen"},
		"NotUTF8":        {reason: "No text.", source: "s3://models/a\xff", want: "cannot be seen"},
		"Below":          {reason: "Below an allowed prefix.", source: "s3://models/reco/7", allowed: []string{"gs://x/", "s3://models/"}},
		"BelowNoSlash":   {reason: "The prefix has no slash at its end.", source: "s3://models/reco", allowed: []string{"s3://models"}},
		"Itself":         {reason: "The prefix itself.", source: "s3://models", allowed: []string{"s3://models/"}},
		"BelowPath":      {reason: "Below a path.", source: "s3://models/shop/1", allowed: []string{"s3://models/shop"}},
		"BesidePath":     {reason: "Beside a path.", source: "s3://models/shopping/1", allowed: []string{"s3://models/shop"}, want: "none of the sources"},
		"BesideBucket":   {reason: "A bucket that begins like it.", source: "s3://models-evil/x", allowed: []string{"s3://models"}, want: "none of the sources"},
		"OtherScheme":    {reason: "Another store.", source: "gs://models/x", allowed: []string{"s3://models"}, want: "none of the sources"},
		"SecondHost":     {reason: "The prefix has no host, the source has.", source: "mlflow-artifacts://evil/x", allowed: []string{"mlflow-artifacts:/"}, want: "none of the sources"},
		"NoHostAllowed":  {reason: "The registry's own store.", source: "mlflow-artifacts:/x", allowed: []string{"mlflow-artifacts:/"}},
		"User":           {reason: "A user in the host is another host.", source: "https://models.example.org@evil/x", allowed: []string{"https://models.example.org"}, want: "none of the sources"},
		"Port":           {reason: "Another port is another host.", source: "https://models.example.org:81/x", allowed: []string{"https://models.example.org"}, want: "none of the sources"},
		"AnyBucket":      {reason: "Two slashes allow any bucket.", source: "s3://any/x", allowed: []string{"s3://"}},
		"AnyBucketOfS3":  {reason: "Of this store.", source: "gs://any/x", allowed: []string{"s3://"}, want: "none of the sources"},
		"UselessPrefix":  {reason: "What is no prefix allows nothing.", source: "s3://models/x", allowed: []string{"s3"}, want: "none of the sources"},
		"FlawedButBelow": {reason: "Below is not enough.", source: "s3://models/../x", allowed: []string{"s3://models"}, want: ".."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckSource(tenant(!tc.own, false), tc.source, tc.allowed)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nCheckSource(%q): want %q, got %v", tc.reason, tc.source, tc.want, err)
			}
			if err != nil && reasonOf(err) != v1alpha1.ReasonRejected {
				t.Errorf("\n%s\nCheckSource(%q): want %s, got %s", tc.reason, tc.source, v1alpha1.ReasonRejected, reasonOf(err))
			}
		})
	}
}

// FuzzCheckSource shows that whatever is accepted lies below an allowed prefix, also for those who decode it as often as they can
// and then resolve it.
func FuzzCheckSource(f *testing.F) {
	for _, s := range []string{
		"s3://models/reco/7", "s3://models/../x", "s3://models/%252e%252e/x", "mlflow-artifacts:/x", "mlflow-artifacts://evil/x",
		"mlflow-artifacts:////evil", "s3://models@evil/x", "s3://models/.%2e/x", "https://a.example.org/b\\..\\c", "s3://models%2fx/../y",
	} {
		f.Add(s)
	}
	allowed := []string{"s3://models/shop", "mlflow-artifacts:/", "https://a.example.org/b/"}
	roots := []url.URL{
		{Scheme: "s3", Host: "models", Path: "/shop"},
		{Scheme: "mlflow-artifacts", Path: "/"},
		{Scheme: "https", Host: "a.example.org", Path: "/b"},
	}
	f.Fuzz(func(t *testing.T, source string) {
		if CheckSource(tenant(true, false), source, allowed) != nil {
			return
		}
		for {
			plain, err := url.QueryUnescape(source)
			if err != nil || plain == source {
				break
			}
			source = plain
		}
		u, err := url.Parse(source)
		if err != nil {
			// Somebody else may be able to; it must look right to the eye at least.
			u = &url.URL{}
			u.Scheme, source, _ = strings.Cut(source, ":")
			if rest, ok := strings.CutPrefix(source, "//"); ok {
				u.Host, source, _ = strings.Cut(rest, "/")
				source = "/" + source
			}
			u.Path = source
		}
		clean := path.Clean("/" + strings.ReplaceAll(u.Path, `\`, "/"))
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" || !slices.ContainsFunc(roots, func(r url.URL) bool {
			return u.Scheme == r.Scheme && u.Host == r.Host &&
				(r.Path == "/" || clean == r.Path || strings.HasPrefix(clean, r.Path+"/"))
		}) {
			t.Errorf("%q leads to %+v", source, u)
		}
	})
}

func TestNames(t *testing.T) {
	for _, name := range []string{"reco", "a b", "größe", "a.b-c_d", strings.Repeat("ü", 256)} {
		if err := CheckModelName(name); err != nil {
			t.Errorf("%q must be fine, got %v", name, err)
		}
	}
	for _, name := range []string{"", "a/b", "a:b", `a\b`, "a%b", `a"b`, "a'b", "a`b", "a\nb", strings.Repeat("a", 257)} {
		if err := CheckModelName(name); err == nil {
			t.Errorf("%q must be refused", name)
		}
	}
	for _, version := range []string{"1", "42", "999999999999999999"} {
		if err := CheckVersion(version); err != nil {
			t.Errorf("%q must be fine, got %v", version, err)
		}
	}
	for _, version := range []string{"", "0", "01", "-1", "v1", "1 ", "reco", "1000000000000000000"} {
		if err := CheckVersion(version); err == nil {
			t.Errorf("%q must be refused", version)
		}
	}
}
