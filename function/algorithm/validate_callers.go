// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

var (
	shapeURLQuery  = regexp.MustCompile(`^/[-a-zA-Z0-9._~/%?=&]*$`)
	shapeMediaType = regexp.MustCompile(`^[-a-zA-Z0-9.+_]+/[-a-zA-Z0-9.+_]+(; *[-a-zA-Z0-9=.]+)?$`)
	shapeHost      = regexp.MustCompile(`^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// maxBody of a request that warms a replica up, in characters.
const maxBody = 16384

func checkProbes(s *state) []check.Problem {
	p := s.spec.Probes

	ps := slices.Concat(
		check.Shaped("spec.probes.path", p.Path, shapeURLQuery, "must be an absolute path of a URL"),
		check.Between("spec.probes.startupSeconds", *p.StartupSeconds, 10, 7200),
	)

	w := p.WarmUp
	if w == nil {
		return ps
	}

	if n := utf8.RuneCountInString(w.Body); n > maxBody {
		ps = append(ps, check.Invalid("spec.probes.warmUp.body", w.Body, fmt.Sprintf("has %d characters: must have at most %d", n, maxBody)))
	}

	return slices.Concat(ps,
		required("spec.probes.warmUp.path", w.Path, shapeURLQuery, "must be an absolute path of a URL"),
		check.Between("spec.probes.warmUp.requests", *w.Requests, 1, 10000),
		check.Shaped("spec.probes.warmUp.contentType", w.ContentType, shapeMediaType, "must be a media type, for instance application/json"),
	)
}

// checkPorts for one that two containers of a pod would want.
func checkPorts(s *state) []check.Problem {
	if s.spec.Probes.WarmUp == nil {
		return nil
	}

	var ps []check.Problem

	const remedy = "is the port on which the warm-up tells that it is done: choose another, or remove spec.probes.warmUp"

	if *s.spec.Port == warmUpPort {
		ps = append(ps, check.Invalid("spec.port", *s.spec.Port, remedy))
	}

	if m := s.spec.Metrics; m != nil && m.Port != nil && *m.Port == warmUpPort {
		ps = append(ps, check.Invalid("spec.metrics.port", *m.Port, remedy))
	}

	return ps
}

// unusablePath is what an HTTPRoute refuses of a path.
var unusablePath = regexp.MustCompile(`/[.]{1,2}(/|$)|%2[fF]|%([^0-9a-fA-F]|$)|%[0-9a-fA-F]([^0-9a-fA-F]|$)`)

func checkRoute(s *state) []check.Problem {
	r := s.spec.Route
	if r == nil {
		return nil
	}

	ps := slices.Concat(
		check.Shaped("spec.route.host", r.Host, shapeHost, "must be a host name in lower case, which may begin with '*.', for instance reco.example.org"),
		check.Shaped("spec.route.path", r.Path, shapeURLPath, "must be an absolute path of a URL, without a query"),
		lasting("spec.route.timeout", r.Timeout, time.Millisecond, time.Hour),
	)

	if strings.Contains(r.Path, "//") {
		ps = append(ps, check.Invalid("spec.route.path", r.Path, "must not contain '//'"))
	}

	if unusablePath.MatchString(r.Path) {
		ps = append(ps, check.Invalid("spec.route.path", r.Path, "must not have a step that is . or .., %2f, or a % without two hexadecimal digits"))
	}

	g := r.Gateway
	if g == nil {
		return append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.route.gateway: is not set, and the platform's settings name no Gateway: " +
			"set it to the name and namespace of one, or ask who runs the platform to set algorithm.gateway"})
	}

	ps = append(ps, check.ObjectName("spec.route.gateway.name", g.Name)...)

	if errs := validation.IsDNS1123Label(g.Namespace); g.Namespace != "" && len(errs) > 0 {
		ps = append(ps, check.Invalid("spec.route.gateway.namespace", g.Namespace, check.Because(errs)))
	}

	if g.SectionName != "" {
		ps = append(ps, check.ObjectName("spec.route.gateway.sectionName", g.SectionName)...)
	}

	return ps
}

func checkAccess(s *state) []check.Problem {
	if s.spec.Access == nil {
		return nil
	}

	var ps []check.Problem

	for i, c := range s.spec.Access.From {
		field := fmt.Sprintf("spec.access.from[%d]", i)

		if errs := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && c.Namespace != everybody && len(errs) > 0 {
			ps = append(ps, check.Invalid(field+".namespace", c.Namespace, "must be the name of a namespace, or * for every namespace: "+check.Because(errs)))
		}

		for _, k := range sortedKeys(c.PodLabels) {
			if errs := validation.IsQualifiedName(k); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels", k, check.Because(errs)))
			}

			if errs := validation.IsValidLabelValue(string(c.PodLabels[k])); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels["+k+"]", string(c.PodLabels[k]), check.Because(errs)))
			}
		}
	}

	return ps
}
