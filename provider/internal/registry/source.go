// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var (
	// scheme of two letters at least: one letter is a drive of Windows. Upper case would be another scheme to us and the same one
	// to the registry.
	scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]+$`)

	// escaped characters that change what a path means: the percent sign itself, dot, slash, backslash and control characters.
	// A reader of the source may decode it any number of times.
	escaped = regexp.MustCompile(`%(25|2[eEfF]|5[cC]|7[fF]|[01][0-9a-fA-F])`)
)

// A uri of files. Its parts are compared as they are written: we cannot know which spellings the store of the files takes for the
// same.
type uri struct {
	scheme string

	// authority after //, and whether there is one: s3:/a/b has none.
	authority string
	has       bool

	// path with the slash at its beginning.
	path string
}

func split(s string) (uri, bool) {
	before, rest, ok := strings.Cut(s, ":")
	if !ok || !scheme.MatchString(before) {
		return uri{}, false
	}
	u := uri{scheme: before}
	if after, found := strings.CutPrefix(rest, "//"); found {
		u.has = true
		u.authority, u.path, found = strings.Cut(after, "/")
		if found {
			u.path = "/" + u.path
		}
		return u, true
	}
	u.path = rest
	return u, strings.HasPrefix(rest, "/")
}

// CheckSource of a version before it is made: whether it could lead anywhere but where it seems to, and whether a config allows
// it, which may name prefixes. The schema refuses much of this; here it is refused in any case.
func CheckSource(t outside.Tenant, source string, allowed []string) error {
	u, ok := split(source)
	if !ok {
		return refused(source, "is not the URI of files", "use one such as s3://models/reco/7")
	}
	if what := u.flaw(source); what != "" {
		return refused(source, what, "use the plain and absolute URI of the files")
	}
	if len(allowed) > 0 {
		if slices.ContainsFunc(allowed, u.below) {
			return nil
		}
		return refused(source, "begins with none of the sources that "+t.Config+" allows",
			"use one of "+strings.Join(allowed, ", "))
	}

	// The registry resolves the version of another model of any owner, and hands out where its files are.
	if t.Shared && (u.scheme == "models" || u.scheme == "runs") {
		return refused(source, "leads to other entries of the registry, which may belong to another owner",
			"use the URI of the files, or ask the platform team to add "+u.scheme+":/ to spec.mlflow.allowedSources")
	}
	return nil
}

// flaw that a source has, or "".
func (u uri) flaw(source string) string {
	switch {
	case u.scheme == "file":
		return "leads to the registry's own files"
	case u.has && u.authority == "":
		return "has no host or bucket after //"
	case strings.Contains(source, ".."):
		return "has .. in it"
	case strings.Contains(u.path, "//"), strings.Contains(u.path+"/", "/./"):
		return "has an empty step or . in its path"
	case strings.ContainsAny(source, `\?#`):
		return `has one of \ ? # in it`
	case escaped.MatchString(source):
		return "has an escaped control character, percent sign, dot, slash or backslash in it"
	case strings.ContainsFunc(source, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return "has spaces or characters in it that cannot be seen"
	default:
		return ""
	}
}

// below reports whether u is what a prefix names, or lies in it. A prefix ends where a part of the path ends: s3://models does
// not allow s3://models-of-others. One that ends with // allows any host or bucket.
func (u uri) below(prefix string) bool {
	if wanted, ok := strings.CutSuffix(prefix, "://"); ok {
		return u.has && u.scheme == wanted
	}
	p, ok := split(prefix)
	if !ok || u.scheme != p.scheme || u.has != p.has || u.authority != p.authority {
		return false
	}
	dir := strings.TrimSuffix(p.path, "/")
	return u.path == p.path || u.path == dir || strings.HasPrefix(u.path, dir+"/")
}

func refused(source, what, remedy string) error {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonRejected,
		Message: fmt.Sprintf("source %q %s", source, what),
		Remedy:  remedy,
	}
}
