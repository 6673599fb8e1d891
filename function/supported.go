// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
)

// The oldest versions that Capstan supports. Crossplane itself refuses packages that ask for a later version of it, unless
// ignoreCrossplaneConstraints is set.
const (
	oldestKubernetes = "1.30"
	oldestCrossplane = "v2.4"
)

// The API server reports no version to a function. ValidatingAdmissionPolicy became part of v1 in Kubernetes 1.30, and
// package/platform.yaml guards data by it.
const (
	requiredPolicy   = "validatingadmissionpolicy"
	policyAPIVersion = "admissionregistration.k8s.io/v1"
	policyKind       = "ValidatingAdmissionPolicy"
)

// unproven reports whether it must still be checked that cluster and Crossplane are supported: until the spec of a composite
// resource is accepted for the first time. Afterwards the check would cost Crossplane the OpenAPI document of a whole API group
// on each run, and clusters do not go back to an older version. What has no managed fields does not come from an API server: a
// preview has no cluster to check.
func unproven(req *edge.Request) bool {
	if req.XR == nil || len(req.XR.Managed()) == 0 {
		return false
	}
	return !compose.IsTrue(req.XR.Map(), v1alpha1.TypeAccepted)
}

// unsupported is what of the cluster and of Crossplane is too old for Capstan. Nothing new is composed then, and everything
// that is there is kept.
func unsupported(req *edge.Request) []check.Problem {
	if !unproven(req) {
		return nil
	}
	if !slices.Contains(req.Meta.GetCapabilities(), fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return []check.Problem{{Reason: v1alpha1.ReasonCrossplaneTooOld, Message: fmt.Sprintf(
			"this version of Crossplane does not answer functions that ask which kinds the cluster has: Capstan needs Crossplane %s or later, "+
				"so upgrade Crossplane", oldestCrossplane)}}
	}

	// Before the first answer it is not known, and Crossplane calls again with one.
	if served, answered := req.Served[requiredPolicy]; answered && !served {
		return []check.Problem{{Reason: v1alpha1.ReasonKubernetesTooOld, Message: fmt.Sprintf(
			"the cluster does not serve %s in %s, which protects data from deletion: Capstan needs Kubernetes %s or later, so upgrade the cluster",
			policyKind, policyAPIVersion, oldestKubernetes)}}
	}
	return nil
}
