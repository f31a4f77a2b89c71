// Classifies two flowers with the library that ../c/build.py wrote, through the add-on of addon.c.
const { Classifier } = require("./net.node");

const classifier = new Classifier(`${__dirname}/net/net.weights`);
const flowers = new Float32Array([5.1, 3.5, 1.4, 0.2, 6.7, 3.0, 5.2, 2.3]);
for (const { name, probabilities } of classifier.forward(flowers, 4)) {
  console.log(name, [...probabilities].map((each) => each.toFixed(3)).join(" "));
}
try {
  classifier.forward(flowers, 8);
} catch (error) {
  console.log(error.code, error.message.split("\n")[0]);
}
try {
  new Classifier("missing");
} catch (error) {
  console.log(error.code, error.message);
}
