// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names that ConfigMaps with masks are required under: the one that the owner of the original demands, and the one of the Preview.
const (
	maskDemanded = "mask-demanded"
	maskChosen   = "mask-chosen"
)

// configMap is the kind of objects that have masks.
var configMap = schema.GroupVersionKind{Version: corev1.SchemeGroupVersion.Version, Kind: "ConfigMap"}

// masks are the ConfigMaps that the copy is masked by, by the names they are required under. A copy that exists was masked when it was made.
func (f *facts) masks() map[string]string {
	if f.spec.Database == nil || f.spec.Database.Data == v1alpha1.PreviewEmpty || f.Observed[Database] != nil {
		return nil
	}
	all := map[string]string{}
	if o := f.Required[basePrefix+Database]; o != nil {
		// One without a name demands a mask, too.
		if name, demanded := compose.Map(o.Map(), "metadata", "annotations")[v1alpha1.AnnotationPreviewsMask].(string); demanded {
			all[maskDemanded] = name
		}
	}
	if m := f.spec.Database.Mask; m != nil && m.ConfigMapRef != nil {
		all[maskChosen] = m.ConfigMapRef.Name
	}
	return all
}

// mask of the copy: what the owner of the original demands, and then what the Preview adds. It says what is wrong with a mask that cannot be
// used; then nothing is copied.
func (f *facts) mask() ([]v1alpha1.MaskStatement, verdict) {
	var all []v1alpha1.MaskStatement
	names := f.masks()
	for _, required := range []string{maskDemanded, maskChosen} {
		name, asked := names[required]
		if !asked {
			continue
		}
		field := "spec.database.mask.configMapRef"
		if required == maskDemanded {
			field = fmt.Sprintf("the annotation %s of Database %s", v1alpha1.AnnotationPreviewsMask, f.spec.Database.Of)
		}
		o := f.Required[required]
		switch {
		case name == "":
			return nil, verdict{reason: v1alpha1.ReasonMaskUnusable, message: field + ": it names no ConfigMap: name one, or remove it"}
		case o == nil && !f.Sought[required]:
			return nil, verdict{reason: v1alpha1.ReasonAwaitingBase, message: fmt.Sprintf("%s: ConfigMap %q was not read yet", field, name)}
		case o == nil:
			return nil, verdict{reason: v1alpha1.ReasonMaskUnusable, message: fmt.Sprintf(
				"%s: there is no ConfigMap %q in this namespace: correct the name, or create it", field, name)}
		}
		some, err := readMask(compose.TextOf(o, "data", v1alpha1.KeyMask))
		if err != nil {
			return nil, verdict{reason: v1alpha1.ReasonMaskUnusable, message: fmt.Sprintf("%s: ConfigMap %q: %v", field, name, err)}
		}
		all = append(all, some...)
	}
	if m := f.spec.Database.Mask; m != nil {
		all = append(all, m.Statements...)
	}
	if len(all) > v1alpha1.MaxMaskStatements {
		return nil, verdict{reason: v1alpha1.ReasonMaskUnusable, message: fmt.Sprintf(
			"spec.database.mask: with what the owner of Database %s demands there are %d statements, and at most %d mask a copy: join some of them",
			f.spec.Database.Of, len(all), v1alpha1.MaxMaskStatements)}
	}
	return all, verdict{allowed: true}
}

// maxDatabase is how many characters the name of a database has at most, and databaseName its form, as in the schema of a Database.
const maxDatabase = 48

var databaseName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// readMask reads the statements of a ConfigMap.
func readMask(text string) ([]v1alpha1.MaskStatement, error) {
	form := fmt.Sprintf("its key %s has to be a list with database and sql of each statement", v1alpha1.KeyMask)
	var all []v1alpha1.MaskStatement
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s, and it has none", form)
	}
	for i, s := range all {
		switch {
		case s.Database == "" || s.SQL == "":
			return nil, fmt.Errorf("%s: number %d lacks one of them", form, i+1)
		case len(s.Database) > maxDatabase || !databaseName.MatchString(s.Database):
			return nil, fmt.Errorf("the database of number %d, %.60q, is no name of one: it has at most %d lower case letters, digits and _, and begins with a letter",
				i+1, s.Database, maxDatabase)
		case utf8.RuneCountInString(s.SQL) > v1alpha1.MaxMaskSQL:
			return nil, fmt.Errorf("the sql of number %d has more than %d characters: divide it", i+1, v1alpha1.MaxMaskSQL)
		}
	}
	return all, nil
}
