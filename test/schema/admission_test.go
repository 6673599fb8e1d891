// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

// root of the repository.
const root = "../.."

// readXRD returns the CRD that Crossplane makes of a CompositeResourceDefinition.
func readXRD(t *testing.T, path string) *extv1.CustomResourceDefinition {
	t.Helper()
	xrd := &xpextv1.CompositeResourceDefinition{}
	readYAML(t, path, xrd)
	crd, err := xcrd.ForCompositeResource(xrd)
	if err != nil {
		t.Fatalf("cannot make a CRD of %q: %v", path, err)
	}
	// The owner is the definition, which has no UID here.
	crd.OwnerReferences = nil
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	return crd
}

// readCRD returns a CRD as the API server sees it.
func readCRD(t *testing.T, path string) *extv1.CustomResourceDefinition {
	t.Helper()
	crd := &extv1.CustomResourceDefinition{}
	readYAML(t, path, crd)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	return crd
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatalf("cannot read a file: %v", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("cannot decode %q: %v", path, err)
	}
}

// internal converts a CRD to the form that the API server works on.
func internal(t *testing.T, crd *extv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	in := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, in, nil); err != nil {
		t.Fatalf("cannot convert CRD %q: %v", crd.Name, err)
	}
	return in
}

// An admission does with an object what the API server does when it is created.
type admission struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
	// namespaced is true of kinds whose objects are in a namespace.
	namespaced bool
}

func newAdmission(t *testing.T, crd *extv1.CustomResourceDefinition) admission {
	t.Helper()
	props, err := apiextensions.GetSchemaForVersion(internal(t, crd), crd.Spec.Versions[0].Name)
	if err != nil {
		t.Fatalf("cannot find the schema of CRD %q: %v", crd.Name, err)
	}
	s, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("cannot read the schema of CRD %q: %v", crd.Name, err)
	}
	v, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("cannot make a validator of CRD %q: %v", crd.Name, err)
	}
	return admission{
		schema: s, validator: v, rules: cel.NewValidator(s, true, celconfig.PerCallLimit),
		namespaced: crd.Spec.Scope == extv1.NamespaceScoped,
	}
}

// create returns the object with its defaults, and what the API server has to say against it under strict validation of
// fields, which is what kubectl asks for.
func (a admission) create(t *testing.T, object map[string]any) (map[string]any, []string) {
	t.Helper()
	object = runtime.DeepCopyJSON(object)

	var complaints []string
	track := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, a.schema, true, track) {
		complaints = append(complaints, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, a.schema)
	defaulting.Default(object, a.schema)

	errs := metavalidation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, a.namespaced,
		metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, object, a.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.schema, object)...)
	if !blocks(errs) {
		found, _ := a.rules.Validate(t.Context(), nil, a.schema, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, found...)
	}
	for _, err := range errs {
		complaints = append(complaints, err.Error())
	}
	return object, complaints
}

// update returns what the API server has to say against a change of an object that it has.
func (a admission) update(t *testing.T, before, after map[string]any) []string {
	t.Helper()
	after, complaints := a.create(t, after)
	if len(complaints) > 0 {
		return complaints
	}
	found, _ := a.rules.Validate(t.Context(), nil, a.schema, after, before, celconfig.RuntimeCELCostBudget)
	for _, err := range found {
		complaints = append(complaints, err.Error())
	}
	return complaints
}

// blocks tells whether the API server leaves out the rules because the schema already refuses the object.
func blocks(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return true
		default:
		}
	}
	return false
}
