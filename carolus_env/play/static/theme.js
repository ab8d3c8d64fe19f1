// The theme that was chosen, before anything is painted; none: the system's.

try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem("carolus.theme")) ?? "auto";
} catch {
  document.documentElement.dataset.theme = "auto";
}
