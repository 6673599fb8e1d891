// SPDX-License-Identifier: Apache-2.0

package compose

// AnnotationSettings names, on one object of each composite resource, the EnvironmentConfig whose settings it was composed with. So
// settings that are gone are not taken for settings that never were: defaults would change everything that runs.
const AnnotationSettings = "capstan.dev/settings"

// NoteSettings in the annotations of the object that remembers them, which always exists. No pod has it.
func (r Request) NoteSettings(annotations map[string]string) map[string]string {
	if r.SettingsFrom == "" {
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationSettings] = r.SettingsFrom
	return annotations
}

// ComposedWith names the EnvironmentConfig that the observed objects were composed with, or is empty.
func ComposedWith(observed map[string]Object, resource string) string {
	if o := observed[resource]; o != nil {
		return TextOf(o, "metadata", "annotations", AnnotationSettings)
	}
	return ""
}
