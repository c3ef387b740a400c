// CartPole-v1: a pole on a cart, pushed to one side or the other.
const task = {
  seconds: 0.02,
  start() {
    const small = () => 0.1 * Math.random() - 0.05;
    return { x: small(), speed: small(), angle: small(), turning: small(), steps: 0 };
  },
  observe: ({ x, speed, angle, turning }) => [x, speed, angle, turning],
  step({ x, speed, angle, turning, steps }, [action]) {
    const force = action === 1 ? 10 : -10;
    const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
    // Masses of 1 and 0.1 kg, half a pole of 0.5 m, 9.8 m/s2.
    const pushed = (force + 0.05 * turning ** 2 * sin) / 1.1;
    const turned = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - (0.1 * cos ** 2) / 1.1));
    const sped = pushed - (0.05 * turned * cos) / 1.1;
    const next = {
      x: x + 0.02 * speed,
      speed: speed + 0.02 * sped,
      angle: angle + 0.02 * turning,
      turning: turning + 0.02 * turned,
      steps: steps + 1,
      reward: 1,
    };
    next.done = Math.abs(next.x) > 2.4 || Math.abs(next.angle) > (12 * Math.PI) / 180 || next.steps >= 500;
    return next;
  },
  draw(context, { x, angle }, width, height, color) {
    const scale = Math.min(width / 5.2, (height - 60) / 1.4);
    const [left, ground] = [width / 2 + x * scale, height - 50];
    context.clearRect(0, 0, width, height);
    context.strokeStyle = color("line");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(width / 2 - 2.4 * scale, ground);
    context.lineTo(width / 2 + 2.4 * scale, ground);
    context.stroke();
    context.fillStyle = color("ink");
    context.fillRect(left - 0.25 * scale, ground - 0.2 * scale, 0.5 * scale, 0.2 * scale);
    context.strokeStyle = color("ember");
    context.lineWidth = Math.max(4, 0.06 * scale);
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(left, ground - 0.2 * scale);
    context.lineTo(left + Math.sin(angle) * scale, ground - 0.2 * scale - Math.cos(angle) * scale);
    context.stroke();
  },
};
