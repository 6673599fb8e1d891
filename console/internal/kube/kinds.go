// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Kind that the console shows.
type Kind struct {
	schema.GroupVersionResource

	// Name of the kind, and what several are called.
	Name, Many string

	// Form is the curated JSON schema; kinds without one are not edited here.
	Form []byte
}

// Kinds in the order of their tables. The address of a page has the name of the resource.
var Kinds = []Kind{
	{v1alpha1.GroupVersion.WithResource("algorithms"), "Algorithm", "Algorithms", apis.AlgorithmForm},
	{v1alpha1.GroupVersion.WithResource("databases"), "Database", "Databases", apis.DatabaseForm},
	{v1alpha1.GroupVersion.WithResource("trainings"), "Training", "Trainings", apis.TrainingForm},
	{storagev1alpha1.GroupVersion.WithResource("buckets"), "Bucket", "Buckets", nil},
	{registryv1alpha1.GroupVersion.WithResource("registeredmodels"), "RegisteredModel", "Models", nil},
	{registryv1alpha1.GroupVersion.WithResource("modelversions"), "ModelVersion", "Versions of models", nil},
}

// KindOf a resource.
func KindOf(resource string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Resource == resource {
			return k, true
		}
	}

	return Kind{}, false
}

// ResourceOf a composed object. The rule of the plural has one exception among the kinds that are composed. It is empty for what is no
// kind: a reference is written by any user with the right to edit the object, and must not name another path of the API server.
func ResourceOf(apiVersion, kind string) schema.GroupVersionResource {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0 || len(validation.IsDNS1035Label(gv.Version)) > 0 ||
		gv.Group != "" && len(validation.IsDNS1123Subdomain(gv.Group)) > 0 {
		return schema.GroupVersionResource{}
	}
	if strings.HasSuffix(kind, "sis") {
		return gv.WithResource(strings.ToLower(strings.TrimSuffix(kind, "is") + "es"))
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))

	return plural
}
