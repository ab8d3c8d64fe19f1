// Sets the chosen theme before anything is painted; "auto" is the system's.

try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem("carolus.theme")) ?? "auto";
} catch {
  document.documentElement.dataset.theme = "auto";
}
